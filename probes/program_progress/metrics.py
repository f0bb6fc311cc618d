"""The numbers of a launch's way through the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.analysis.counts import ratio
from tui_probe.probekit.metric import Metric, where_any

if TYPE_CHECKING:
    from .analysis import ProgramProgress


def _warps(found: ProgramProgress) -> int:
    return int(found.progress.ran.sum())


def _entered(found: ProgramProgress) -> int:
    return int(np.maximum(found.progress.reached, 0).sum())


def _kept(found: ProgramProgress) -> int:
    return int(found.progress.kept.sum())


def _longest_line(found: ProgramProgress) -> int | None:
    return found.blocks[0].line if found.blocks else None


def _longest_share(found: ProgramProgress) -> float | None:
    return ratio(found.blocks[0].cycles, found.cycles) if found.blocks else None


def _visit(found: ProgramProgress) -> float | None:
    return found.blocks[0].cycles_per_visit if found.blocks else None


def _unknown(found: ProgramProgress) -> float | None:
    return ratio(found.unknown, found.cycles)


def _not_all(found: ProgramProgress, value: Any) -> bool:
    del value
    return _kept(found) < _entered(found)


METRICS: Final = (
    Metric("warps", "warps", read=_warps),
    Metric("blocks_entered", "blocks entered", read=_entered),
    Metric("blocks_kept", "kept", read=_kept, shown=_not_all),
    Metric("longest_line", "most time at PTX line", place=True, over_launches="none", read=_longest_line),
    Metric("longest_share", "share", over_launches="mean", read=_longest_share),
    Metric("cycles_per_visit", "per visit", "cycles", better="lower", over_launches="mean", read=_visit),
    Metric("unknown_share", "not known", over_launches="mean", read=_unknown, shown=where_any),
)

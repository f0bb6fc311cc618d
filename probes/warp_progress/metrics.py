"""The numbers of a launch's warps and their way through the main loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.probekit.metric import Metric, where_known

if TYPE_CHECKING:
    from tui_probe.analysis.warp_pace import WarpProgress


def _warps(found: WarpProgress) -> int:
    return int(found.ran.sum())


def _duration(found: WarpProgress) -> float | None:
    return float(found.end[found.ran].max()) if found.alignment and found.timed else None


def _error(found: WarpProgress) -> float | None:
    return found.alignment.error_ns if found.alignment and found.timed else None


def _median(found: WarpProgress) -> float | None:
    lived = found.warps["elapsed"][found.ran]
    return float(np.median(lived)) if len(lived) else None


def _longest(found: WarpProgress) -> int | None:
    lived = found.warps["elapsed"][found.ran]
    return int(lived.max()) if len(lived) else None


def _stragglers(found: WarpProgress) -> int:
    return len(found.stragglers())


def _half_done(found: WarpProgress) -> float | None:
    return found.half_done_ns() if found.timed else None


def _loop_line(found: WarpProgress) -> int | None:
    return found.main_loop.line if found.main_loop else None


def _iteration(found: WarpProgress) -> float | None:
    return found.main_loop.cycles_per_iteration if found.main_loop else None


def _arrivals(found: WarpProgress) -> int:
    return int(np.maximum(found.reached, 0).sum())


def _kept(found: WarpProgress) -> int:
    return int(found.kept.sum())


def _where_timed(found: WarpProgress, value: Any) -> bool:
    del value
    return found.timed


def _with_loop(found: WarpProgress, value: Any) -> bool:
    del value
    return found.main_loop is not None


def _not_all(found: WarpProgress, value: Any) -> bool:
    del value
    return _kept(found) < _arrivals(found)


METRICS: Final = (
    Metric("warps", "warps", read=_warps, page="progress"),
    Metric(
        "duration", "first start to last end", "ns", better="lower", over_launches="mean", read=_duration,
        shown=_where_timed,
    ),
    Metric("alignment_error", "±", "ns", over_launches="largest", read=_error, shown=_where_timed),
    Metric("median_cycles", "median warp", "cycles", better="lower", over_launches="mean", read=_median),
    Metric("longest_cycles", "longest", "cycles", better="lower", over_launches="largest", read=_longest),
    Metric("stragglers", "stragglers", better="lower", read=_stragglers, page="progress"),
    Metric(
        "tail", "half of SMs done for", "ns", better="lower", over_launches="mean", read=_half_done,
        shown=_where_timed, alone="half of SMs done for",
    ),
    Metric("main_loop", "main loop at line", place=True, over_launches="none", read=_loop_line, shown=where_known),
    Metric(
        "cycles_per_iteration", "per iteration", "cycles", better="lower", over_launches="mean", read=_iteration,
        shown=_with_loop,
    ),
    Metric("arrivals", "arrivals at loops", read=_arrivals, shown=_not_all),
    Metric("arrivals_kept", "kept", read=_kept, shown=_not_all),
)  # fmt: skip

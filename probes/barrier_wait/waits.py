"""How long warps waited at barriers, as distributions over warps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.analysis.counts import warp_records
from tui_probe.draw import units
from tui_probe.probekit.kept import WITH_DETAIL, sampled_words
from tui_probe.probekit.probe import Waits

from .analysis import RECORD, analyse

if TYPE_CHECKING:
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.probe_results import ProbeResult

_LABELS: Final = ("one warp", "one barrier")


def waits(of: ProbeResult, progress: Progress) -> Waits:
    """Cycles that each warp waited in all, and on average at a barrier; not known of a launch whose sums were kept."""
    progress(0.0)
    if of.result.group(0) is not None:
        return _of_sums(of)
    records = warp_records(of.result, RECORD, of.probe)
    left = records[records["threads"] > 0]
    waited, barriers = left["waited"].astype(np.int64), left["barriers"].astype(np.int64)
    met = barriers > 0
    values = dict(zip(_LABELS, (waited, waited[met] // barriers[met]), strict=True))
    words = f"{units.counted(len(left), 'warp')}, {units.counted(int(barriers.sum()), 'barrier')}"
    missing = of.result.threads - int(left["threads"].sum(dtype=np.int64))
    return Waits(of.which, values, words + _left_out(of, missing))


def _of_sums(of: ProbeResult) -> Waits:
    found = analyse(of.result)
    words = units.counted(found.barriers, "barrier") + _left_out(of, found.threads_missing)
    return Waits(of.which, {}, f"{words}; of each warp: {WITH_DETAIL}", _LABELS)


def _left_out(of: ProbeResult, threads_missing: int) -> str:
    words = f", excluding {units.counted(threads_missing, 'thread')} that did not exit" if threads_missing else ""
    return words + (f"; {sampled_words(of.result.sample)}" if of.result.sample else "")

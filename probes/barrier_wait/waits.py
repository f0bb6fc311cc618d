"""How long warps waited at barriers, as distributions over warps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.analysis.counts import warp_records
from tui_probe.draw import units
from tui_probe.probekit.kept import sampled_words
from tui_probe.probekit.probe import Waits

from .analysis import RECORD

if TYPE_CHECKING:
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.probe_results import ProbeResult


def waits(of: ProbeResult, progress: Progress) -> Waits:
    """Cycles that each warp waited in all, and on average at a barrier."""
    progress(0.0)
    records = warp_records(of.result, RECORD, of.probe)
    left = records[records["threads"] > 0]
    waited, barriers = left["waited"].astype(np.int64), left["barriers"].astype(np.int64)
    met = barriers > 0
    values = {"one warp": waited, "one barrier": waited[met] // barriers[met]}
    words = f"{units.counted(len(left), 'warp')}, {units.counted(int(barriers.sum()), 'barrier')}"
    missing = of.result.threads - int(left["threads"].sum(dtype=np.int64))
    words += f", excluding {units.counted(missing, 'thread')} that did not exit" if missing else ""
    words += f"; {sampled_words(of.result.sample)}" if of.result.sample else ""
    return Waits(of.which, values, words)

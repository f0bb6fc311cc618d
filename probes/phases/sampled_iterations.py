"""Loops with sampled iterations: the iteration that each span is in, and the iterations that a span represents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.sites import Site


@dataclass(frozen=True, slots=True)
class SampledIterations:
    """Spans by iteration, where the first of ``period`` iterations of innermost loops is recorded. ``loop`` is the loop
    of each span, 0 for none; ``number`` its iteration since the loop was entered, from 1. ``entry`` is the number of
    this entry among those of all warps, in order. ``is_skipped``: time of iterations without records.

    The records at starts of iterations are those of iterations 1, 2, k + 1, k + 2, … of an entry: from the second one
    on, nothing was recorded. So the time of a loop is known, and that of its phases is estimated.
    """

    period: int
    loop: NDArray[np.int64]
    number: NDArray[np.int64]
    entry: NDArray[np.int64]
    is_skipped: NDArray[np.bool_]

    @classmethod
    def from_sites(
        cls, warp: NDArray[np.int64], site_index: NDArray[np.int64], sites: Sequence[Site]
    ) -> SampledIterations | None:
        """Return the iterations of spans, by the warp and the site of each span; None if all were recorded.

        The index of a site is -1 if its phase was not kept.
        """
        period = max((site.phase.sampling_period for site in sites if site.phase), default=0)
        if not period:
            return None
        phases = [site.phase for site in sites]
        loops = [(phase.loop or 0) if phase and phase.sampling_period else 0 for phase in phases]
        starts = [bool(phase and phase.sampling_period and phase.iterates) for phase in phases]
        loop = np.array([*loops, 0], np.int64)[site_index]
        is_start = np.array([*starts, False], bool)[site_index]
        is_entry = (np.diff(loop, prepend=-1) != 0) | (np.diff(warp, prepend=-1) != 0)
        entry = np.cumsum(is_entry) - 1
        records = np.cumsum(is_start)
        earlier_records = (records - is_start)[is_entry]
        # The index of each span's iteration among the recorded starts of iterations of its entry.
        record_number = (records - earlier_records[entry] - 1).clip(0)
        number = np.where(loop > 0, record_number // 2 * period + record_number % 2 + 1, 0)
        return cls(period, loop, number, entry, is_start & (record_number % 2 == 1))

    def overall_numbers(self, warp: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the iteration of each span, counted over all entries of its warp into the loop.

        Of an earlier entry, the iterations until its last record count.
        """
        entry_starts = np.flatnonzero(np.diff(self.entry, prepend=-1))
        iteration_counts = np.maximum.reduceat(self.number, entry_starts) if len(entry_starts) else self.number
        order = np.lexsort((entry_starts, self.loop[entry_starts], warp[entry_starts]))
        sums = np.cumsum(iteration_counts[order]) - iteration_counts[order]
        warps, loops = warp[entry_starts][order], self.loop[entry_starts][order]
        is_first_entry = (np.diff(warps, prepend=-1) != 0) | (np.diff(loops, prepend=-1) != 0)
        sums -= sums[is_first_entry][np.cumsum(is_first_entry) - 1]
        earlier_iterations = np.empty(len(entry_starts), np.int64)
        earlier_iterations[order] = sums
        return np.where(self.loop > 0, self.number + earlier_iterations[self.entry], 0)

    def weights(self, warp: NDArray[np.int64], cycles: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the time that each span stands for, as a multiple of its own; 0 for iterations without records.

        Iterations without records are taken to be as the recorded ones of the same warp and loop, without the first of
        an entry if there are others.
        """
        keys, group = np.unique(warp * (int(self.loop.max(initial=0)) + 1) + self.loop, return_inverse=True)
        count = len(keys)

        def total_cycles(mask: NDArray[Any]) -> NDArray[np.float64]:
            return np.bincount(group[mask], cycles[mask], count).astype(np.float64)

        is_recorded = (self.loop > 0) & ~self.is_skipped
        is_repeated = is_recorded & (self.number > 1)
        represents_others = np.where((total_cycles(is_repeated) > 0)[group], is_repeated, is_recorded)
        recorded_cycles, skipped_cycles = total_cycles(represents_others), total_cycles(self.is_skipped)
        scale = 1 + np.divide(skipped_cycles, recorded_cycles, out=np.zeros(count), where=recorded_cycles > 0)
        return np.where(self.is_skipped, 0.0, np.where(represents_others, scale[group], 1.0))

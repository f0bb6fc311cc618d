"""Quantities of a launch: phases by role as rows, overlap of loads with computation, and products over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.phase_names import PRODUCT_WAIT
from tui_probe.trace.launch_shape import WARP_SIZE

from .analysis import NOT_RECORDED
from .waits import main_site, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tui_probe.trace.sites import Site

    from .analysis import LaunchPhases, Spans
    from .kinds import Phase

NOTABLY_SLOWER: Final = 1.5
"""Median time of a warp in a phase, over that of other warps of its role, from which on it is named."""
_NOTABLE_PHASE: Final = 0.02
"""Part of a role's time from which on slow warps of a phase are named."""
_MAX_SLOW_WARPS: Final = 3
_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A phase of a role: cycles of all its warps, and their part of the time of the blocks. ``median`` and ``p95``
    are cycles per iteration in a recorded loop, elsewhere per warp; ``iterations`` is the number of these. If not all
    iterations are recorded, ``cycles`` and ``multiply_adds`` are estimates for all of them.
    """

    role: str
    phase: Phase
    warps: int
    cycles: int
    share: float
    iterations: int
    median: float
    p95: float
    multiply_adds: int | None
    """Multiply-adds of matrix products that its warps issue in the phase; None if they are unknown."""
    blocks: int
    site: Site
    """The start with most of its cycles."""
    part: str = ""
    """``warp 5`` or ``other warps`` for some warps of the role; "" for all."""
    parts: tuple[PhaseRow, ...] = ()
    """The rows of warps that take much longer than the others of the role, and the row of the others."""

    @property
    def name(self) -> str:
        """The name of the phase; of some warps, which these are."""
        return f"  {self.part}" if self.part else self.phase.name

    @property
    def place(self) -> str:
        """Source position at which most of its cycles begin; "" if unknown."""
        return place_of(self.site)

    def per_clock(self) -> float | None:
        """Multiply-adds of a block per cycle of the phase, which its warps are taken to be in at the same time."""
        if not self.multiply_adds or not self.cycles:
            return None
        return self.multiply_adds * self.warps / self.blocks / self.cycles


@lru_cache(maxsize=2)
def rows_of(launch: LaunchPhases) -> list[PhaseRow]:
    """The phases of each role, those with most time first."""
    rows = []
    products = np.array([_UNKNOWN if count is None else count for count in map(_site_products, launch.sites)], np.int64)
    block_cycles = np.array([launch.block_cycles[block] for block in launch.warps.block.tolist()], np.int64)
    for role, name in enumerate(launch.roles):
        of_role = launch.warps.role == role
        total, blocks = int(block_cycles[of_role].sum()), len(np.unique(launch.warps.block[of_role]))
        for number, phase in enumerate(launch.phases):
            span_numbers = launch.span_numbers(role, number)
            if not len(span_numbers):
                continue
            spans, weight = launch.spans.select(span_numbers), launch.weight[span_numbers]
            times, warp_of_time = _iteration_cycles(launch, spans, span_numbers)
            cycles, warps = round((spans.cycles * weight).sum()), int(np.count_nonzero(np.diff(spans.warp, prepend=-1)))
            median, p95 = (float(value) for value in np.percentile(times, (50, 95)))
            span_products = products[spans.site]
            product_count = (
                None if (span_products == _UNKNOWN).any() else round(WARP_SIZE * (span_products * weight).sum())
            )
            share, longest_site = cycles / total, main_site(launch, spans)
            row = PhaseRow(
                name, phase, warps, cycles, share, len(times), median, p95, product_count, blocks, longest_site
            )
            rows.append(replace(row, parts=tuple(_slow_warp_rows(row, times, launch.warps.warp[warp_of_time]))))
    order = {name: place for place, name in enumerate(launch.roles)}
    return sorted(rows, key=lambda row: (order[row.role], -row.cycles))


def _site_products(site: Site) -> int | None:
    return site.phase.products if site.phase else None


def multiply_adds(launch: LaunchPhases) -> int | None:
    """Multiply-adds of matrix products that the launch issued; None if some are unknown or not recorded."""
    counts = [row.multiply_adds for row in rows_of(launch)]
    if None in counts or launch.starts_kept < launch.starts_seen or launch.sampling_period:
        return None
    return sum(count for count in counts if count is not None)


def _iteration_cycles(
    launch: LaunchPhases, spans: Spans, span_numbers: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cycles of spans of one phase, by warp and iteration, and the warps."""
    key = spans.warp * (int(launch.iteration.max(initial=0)) + 1) + launch.iteration[span_numbers]
    order = np.argsort(key, kind="stable")
    group_starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    return np.add.reduceat(spans.cycles[order], group_starts), spans.warp[order][group_starts]


def _slow_warp_rows(row: PhaseRow, times: NDArray[np.int64], warp: NDArray[np.int64]) -> Iterator[PhaseRow]:
    """The warps that take much longer for a phase of a loop than the others of the role, a row each, and the others.

    ``warp`` is the number in its block of the warp of each of ``times``.
    """
    if row.phase.loop is None or row.phase.activity == "wait" or row.share < _NOTABLE_PHASE:
        return
    numbers = np.unique(warp).tolist()
    medians = {number: float(np.median(times[warp == number])) for number in numbers}
    limit = NOTABLY_SLOWER * float(np.median(list(medians.values())))
    slow_warps = [number for number in numbers if medians[number] > limit][:_MAX_SLOW_WARPS]
    if not slow_warps:
        return
    for name, mask in (
        *((f"warp {number}", warp == number) for number in slow_warps), ("other warps", ~np.isin(warp, slow_warps)),
    ):  # fmt: skip
        part_times = times[mask]
        cycles = round(row.cycles * float(part_times.sum()) / float(times.sum()))
        warp_count = round(row.warps * len(np.unique(warp[mask])) / len(numbers))
        median, p95 = (float(value) for value in np.percentile(part_times, (50, 95)))
        yield replace(
            row, part=name, warps=warp_count, cycles=cycles, share=row.share * cycles / row.cycles,
            iterations=len(part_times), median=median, p95=p95, multiply_adds=None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Overlap:
    """Parts of the time of blocks in which some warp computes, some warp issues or does loads, and both."""

    compute: float
    load: float
    compute_and_load: float
    neither: float
    """No warp computes, loads or stores: all wait, or do what no phase names."""

    @property
    def parts(self) -> tuple[float, float, float, float]:
        """All of them, in this order."""
        return self.compute, self.load, self.compute_and_load, self.neither


@lru_cache(maxsize=2)
def overlap_of(launch: LaunchPhases) -> Overlap | None:
    """The overlap in blocks of the launch; None if these took no time, the user named the phases, or not all iterations
    are recorded: roles that run ahead of others are in other iterations at the same time.
    """
    if launch.sampling_period or any(phase.is_named for phase in launch.phases):
        return None
    totals = np.zeros(5)
    for block in launch.some_blocks:
        totals += _block_times(launch, block)
    cycles, compute_cycles, load_cycles, overlap_cycles, idle_cycles = totals.tolist()
    return (
        Overlap(compute_cycles / cycles, load_cycles / cycles, overlap_cycles / cycles, idle_cycles / cycles)
        if cycles
        else None
    )


def _block_times(launch: LaunchPhases, block: int) -> NDArray[np.float64]:
    """Cycles of a block: all, with computation, with loads, with both, and with neither these nor stores."""
    spans = launch.spans.select(launch.block_spans(block))
    spans = spans.select(spans.phase >= 0)
    activity = np.array([phase.activity for phase in launch.phases])[spans.phase]
    times = np.unique(np.concatenate((spans.start, spans.end, [0, launch.block_cycles[block]])))
    length = np.diff(times)
    active = {}
    for name in ("compute", "load", "store"):
        is_active = activity == name
        change = np.zeros(len(times), np.int64)
        np.add.at(change, np.searchsorted(times, spans.start[is_active]), 1)
        np.add.at(change, np.searchsorted(times, spans.end[is_active]), -1)
        active[name] = np.cumsum(change)[:-1] > 0
    compute, load = active["compute"], active["load"]
    is_idle = ~(compute | load | active["store"])
    parts = (np.ones(len(length), bool), compute, load, compute & load, is_idle)
    return np.array([float(length[part].sum()) for part in parts])


@dataclass(frozen=True, slots=True)
class TensorRates:
    """Multiply-adds per cycle that a block issues: each phase spreads its products evenly over its time."""

    times: NDArray[np.float64]
    issued: NDArray[np.float64]
    """Multiply-adds from the start of the block to each time."""

    @classmethod
    def for_block(cls, launch: LaunchPhases, block: int) -> TensorRates | None:
        """The rates of a block; None if it issues no products, or an unknown number, or if iterations are sampled."""
        if launch.sampling_period:
            return None
        mask = (launch.warps.block == block)[launch.spans.warp] & (launch.spans.phase >= 0)
        spans = launch.spans.select(mask)
        site_products = [site.phase.products if site.phase else 0 for site in launch.sites]
        if any(site_products[site] is None for site in np.unique(spans.site).tolist()):
            return None
        products = WARP_SIZE * np.array([number or 0 for number in site_products], np.float64)[spans.site]
        spans, products = spans.select(products > 0), products[products > 0]
        if not len(spans):
            return None
        times, time_index = np.unique(np.concatenate((spans.start, spans.end)), return_inverse=True)
        rate = products / np.maximum(spans.cycles, 1)
        change = np.bincount(time_index, np.concatenate((rate, -rate)), len(times))
        issued = np.concatenate(([0.0], np.cumsum(np.cumsum(change)[:-1] * np.diff(times))))
        return cls(times.astype(np.float64), issued)


@dataclass(frozen=True, slots=True)
class ProductGaps:
    """The time of a block in which no warp issues products or waits for a wgmma: ``cycles`` of those ``recorded``.

    ``by_role`` has the roles that issue products, with the mean cycles of their warps in each phase during gaps.
    """

    cycles: float
    recorded: float
    by_role: dict[int, dict[int, float]]

    @classmethod
    def for_block(cls, launch: LaunchPhases, block: int) -> ProductGaps | None:
        """The gaps of a block; None if its rates are unknown."""
        if TensorRates.for_block(launch, block) is None:
            return None
        spans = launch.spans.select((launch.warps.block == block)[launch.spans.warp])
        is_product = np.array([bool(site.phase and site.phase.products) for site in launch.sites])[spans.site]
        is_wait = np.array([phase.work == PRODUCT_WAIT for phase in launch.phases] + [False])[spans.phase]
        is_recorded = spans.phase != NOT_RECORDED
        is_busy = (is_product | is_wait) & is_recorded
        end = float(spans.start[~is_recorded].min(initial=launch.block_cycles[block]))
        times, gap_before = _time_outside(spans.select(is_busy), end)
        roles = launch.warps.role[spans.warp]
        by_role: dict[int, dict[int, float]] = {}
        for role in np.unique(roles[is_product & is_recorded]).tolist():
            gap_spans = spans.select((roles == role) & ~is_busy & is_recorded)
            cycles = np.interp(gap_spans.end, times, gap_before) - np.interp(gap_spans.start, times, gap_before)
            sums = np.bincount(gap_spans.phase, cycles, len(launch.phases)) / len(np.unique(spans.warp[roles == role]))
            by_role[role] = {phase: gap for phase, gap in enumerate(sums.tolist()) if gap > 0}
        return cls(float(gap_before[-1]), end, by_role)


def _time_outside(spans: Spans, end: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return times from 0 to ``end``, and how much of the time before each is in none of the spans."""
    edges = np.concatenate(([0.0, end], spans.start, spans.end)).clip(0, end)
    change = np.concatenate(([0, 0], np.ones(len(spans), np.int64), -np.ones(len(spans), np.int64)))
    times, time_index = np.unique(edges, return_inverse=True)
    depth = np.cumsum(np.bincount(time_index, change, len(times)))[:-1]
    return times, np.concatenate(([0.0], np.cumsum(np.where(depth > 0, 0, np.diff(times)))))

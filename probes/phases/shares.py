"""Table of phases by role, and how much of the time of blocks loads and computation overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from .waits import main_site, place_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.trace.sites import Site

    from .analysis import Phases
    from .kinds import Phase

_UNKNOWN: Final = -1
_LANES: Final = 32


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A phase of a role: cycles of all its warps, and their part of the time of the blocks. ``median`` and ``p95``
    are cycles per iteration in a recorded loop, elsewhere per warp; ``iterations`` is the number of these.
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
def rows_of(launch: Phases) -> list[PhaseRow]:
    """The phases of each role, those with most time first."""
    rows = []
    products = np.array([_UNKNOWN if own is None else own for own in map(_products, launch.sites)], np.int64)
    block_cycles = np.array([launch.block_cycles[block] for block in launch.warps.block.tolist()], np.int64)
    for role, name in enumerate(launch.roles):
        own = launch.warps.role == role
        total, inside = int(block_cycles[own].sum()), own[launch.spans.warp]
        for number, phase in enumerate(launch.phases):
            chosen = inside & (launch.spans.phase == number)
            if chosen.any():
                times = _iteration_cycles(launch, chosen)
                cycles, warps = int(times.sum()), len(np.unique(launch.spans.warp[chosen]))
                median, p95 = (float(value) for value in np.percentile(times, (50, 95)))
                own_products = products[launch.spans.site[chosen]]
                issued = None if (own_products == _UNKNOWN).any() else _LANES * int(own_products.sum())
                blocks = len(np.unique(launch.warps.block[own]))
                longest = main_site(launch, launch.spans.where(chosen))
                rows.append(
                    PhaseRow(
                        name, phase, warps, cycles, cycles / total, len(times), median, p95, issued, blocks, longest
                    )
                )
    order = {name: place for place, name in enumerate(launch.roles)}
    return sorted(rows, key=lambda row: (order[row.role], -row.cycles))


def _products(site: Site) -> int | None:
    return site.phase.products if site.phase else None


def multiply_adds(launch: Phases) -> int | None:
    """Multiply-adds of matrix products that the launch issued; None if some are unknown or not recorded."""
    counts = [row.multiply_adds for row in rows_of(launch)]
    if None in counts or launch.starts_kept < launch.starts_seen:
        return None
    return sum(count for count in counts if count is not None)


def _iteration_cycles(launch: Phases, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Cycles of the chosen spans, of one phase, by warp and iteration."""
    key = launch.spans.warp[chosen] * (int(launch.iteration.max(initial=0)) + 1) + launch.iteration[chosen]
    _, place = np.unique(key, return_inverse=True)
    cycles = np.zeros(int(place.max()) + 1, np.int64)
    np.add.at(cycles, place, launch.spans.cycles[chosen])
    return cycles


@dataclass(frozen=True, slots=True)
class Overlap:
    """Parts of the time of blocks in which some warp computes, some warp issues or does loads, and both."""

    compute: float
    load: float
    both: float
    idle: float
    """No warp computes, loads or stores: all wait, or do what no phase names."""

    @property
    def parts(self) -> tuple[float, float, float, float]:
        """All of them, in this order."""
        return self.compute, self.load, self.both, self.idle


@lru_cache(maxsize=2)
def overlap_of(launch: Phases) -> Overlap | None:
    """The overlap in blocks of the launch; None if these took no time, or the user named the phases."""
    if any(phase.is_named for phase in launch.phases):
        return None
    totals = np.zeros(5)
    for block in launch.some_blocks:
        totals += _block_times(launch, block)
    cycles, compute, load, both, idle = totals.tolist()
    return Overlap(compute / cycles, load / cycles, both / cycles, idle / cycles) if cycles else None


def _block_times(launch: Phases, block: int) -> NDArray[np.float64]:
    """Cycles of a block: all, with computation, with loads, with both, and with neither these nor stores."""
    inside = (launch.warps.block == block)[launch.spans.warp] & (launch.spans.phase >= 0)
    spans = launch.spans.where(inside)
    activity = np.array([phase.activity for phase in launch.phases])[spans.phase]
    times = np.unique(np.concatenate((spans.start, spans.end, [0, launch.block_cycles[block]])))
    length = np.diff(times)
    active = {}
    for name in ("compute", "load", "store"):
        own = activity == name
        change = np.zeros(len(times), np.int64)
        np.add.at(change, np.searchsorted(times, spans.start[own]), 1)
        np.add.at(change, np.searchsorted(times, spans.end[own]), -1)
        active[name] = np.cumsum(change)[:-1] > 0
    compute, load = active["compute"], active["load"]
    none = ~(compute | load | active["store"])
    parts = (np.ones(len(length), bool), compute, load, compute & load, none)
    return np.array([float(length[part].sum()) for part in parts])

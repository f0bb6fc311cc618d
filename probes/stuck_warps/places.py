"""Model of a launch that did not end: the place of each warp, warps grouped by place, and the warps they wait for."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.draw import units
from tui_probe.probekit.finding import place as place_text
from tui_probe.trace.launch_shape import WARP_SIZE, index_in, index_text

from .synchronization import Synchronization

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.source_lines import SourceLine

PlaceKind = Literal["entry", "loop", "barrier", "warp barrier", "mbarrier", "lock", "flag", "shared flag"]
ALL_LANES: Final = (1 << WARP_SIZE) - 1
"""Mask of all lanes of a warp."""
_BEFORE_PLACES: Final = "before its first loop or wait"


@dataclass(frozen=True, slots=True)
class Mark:
    """Operation of a warp at ``line``, in these ``lanes``, to ``address``."""

    line: int
    address: int
    lanes: int


@dataclass(frozen=True, slots=True)
class WarpPlace:
    """A line of ``pruned.ptx``, or an offset of SASS, at which warps stay; 0: between the entry and the first place.

    ``address`` is that of a lock or flag, or of an mbarrier in shared memory; the number of a barrier; the mask of a
    barrier of lanes; 0 of others. ``phase`` is the parity that warps wait for at an mbarrier.
    """

    line: int
    kind: PlaceKind
    address: int = 0
    phase: int | None = None
    opcode: str = ""
    source: SourceLine | None = None

    @property
    def text(self) -> str:
        """``bar.sync PTX:19 tile.cu:12``; ``before its first loop or wait`` of a warp that has come to none."""
        return place_text(self.line, self.source, self.opcode or None) if self.line else _BEFORE_PLACES

    @property
    def at_text(self) -> str:
        """``at bar.sync PTX:19 tile.cu:12``, or ``before its first loop or wait``."""
        return f"at {self.text}" if self.line else self.text


@dataclass(frozen=True, slots=True)
class StuckWarp:
    """A warp: its linear block, its number in that, the lanes that came to its place last, and what it did before.

    ``held_lock`` is the lock that it took last, unless its ``last_operation`` released it. ``read_value`` is the value
    that it read last at its place, where that polls. ``lanes_on_gpu`` counts its lanes that have not ended.
    ``polled_place`` is where it polled last in the loop around its barrier. A warp that has ended keeps its last place.
    """

    block: int
    warp: int
    place: WarpPlace
    lanes: int
    held_lock: Mark | None
    last_operation: Mark | None
    read_value: int | None = None
    lanes_on_gpu: int = WARP_SIZE
    polled_place: WarpPlace | None = None

    @property
    def has_ended(self) -> bool:
        """True if it has no lane on the GPU."""
        return not self.lanes_on_gpu

    @property
    def lanes_away(self) -> int:
        """Lanes that have not ended, and did not come to the warp's place."""
        return max(self.lanes_on_gpu - self.lanes.bit_count(), 0)


@dataclass(frozen=True, slots=True)
class PlaceGroup:
    """The warps at one place. ``missing_warps`` are the other warps of their blocks that are on the GPU, by place, then
    those that ended, if the place counts them.
    """

    place: WarpPlace
    warps: tuple[StuckWarp, ...]
    missing_warps: tuple[StuckWarp, ...] = ()

    @property
    def blocks(self) -> tuple[int, ...]:
        """Their blocks, each once."""
        return tuple(dict.fromkeys(warp.block for warp in self.warps))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """``count`` of arrivals at an mbarrier by ``threads``, None if only the launch knows it, and that of each warp."""

    count: int | None
    threads: int
    marks: Mapping[int, Mark]


@dataclass(frozen=True, slots=True)
class StuckWarps:
    """The warps of a launch while it did not end, and what the code of the kernel says of its synchronization.

    ``ended_warps``: warps that have ended, where no other warp has taken their slot on the GPU since.
    """

    grid: Dim3
    block: Dim3
    groups: tuple[PlaceGroup, ...]
    code: Synchronization = field(default_factory=Synchronization)
    ended_warps: tuple[StuckWarp, ...] = ()

    @property
    def warps(self) -> tuple[StuckWarp, ...]:
        """All of them, by group."""
        return tuple(warp for group in self.groups for warp in group.warps)

    @property
    def blocks(self) -> int:
        """Blocks that have a warp on the GPU."""
        return len({warp.block for warp in self.warps})

    @property
    def warps_per_block(self) -> int:
        """Warps of a whole block."""
        x, y, z = self.block
        return -(-x * y * z // WARP_SIZE)

    @property
    def grid_blocks(self) -> int:
        """Blocks of the grid."""
        x, y, z = self.grid
        return x * y * z

    @property
    def blocks_not_started(self) -> int:
        """Blocks behind the last one that is known: blocks start in the order of their numbers."""
        last_block = self.grid_blocks - 1
        return last_block - max((warp.block for warp in (*self.warps, *self.ended_warps)), default=last_block)

    @property
    def blocks_ended(self) -> int:
        """Blocks that started and have no warp on the GPU."""
        return self.grid_blocks - self.blocks_not_started - self.blocks

    @property
    def warps_ended(self) -> int:
        """Warps that started and are not on the GPU."""
        return (self.blocks + self.blocks_ended) * self.warps_per_block - len(self.warps)

    def threads_unknown(self, block: int) -> int:
        """Threads of a block that have ended, in warps without a record."""
        x, y, z = self.block
        ended_threads = sum(
            min(WARP_SIZE, x * y * z - warp.warp * WARP_SIZE) for warp in self.ended_warps if warp.block == block
        )
        return x * y * z - ended_threads - sum(warp.lanes_on_gpu for warp in self.warps if warp.block == block)

    def writers(self, place: WarpPlace) -> list[StuckWarp]:
        """The warps whose last write was to the address that a place polls, not those that poll by writing."""
        return [
            warp
            for warp in self.warps
            if warp.last_operation is not None
            and warp.last_operation.address == place.address
            and warp.last_operation.line != place.line
        ]

    def holder(self, address: int) -> StuckWarp | None:
        """The warp that took a lock last."""
        return next(
            (warp for warp in self.warps if warp.held_lock is not None and warp.held_lock.address == address), None
        )

    def ended_holder(self, address: int) -> StuckWarp | None:
        """A warp that ended and had taken a lock last."""
        return next(
            (warp for warp in self.ended_warps if warp.held_lock is not None and warp.held_lock.address == address),
            None,
        )

    def warp_text(self, warp: StuckWarp) -> str:
        """``block 3 warp 1``, with the block's coordinates in a grid of more than one dimension."""
        _, y, z = self.grid
        block = str(warp.block) if y * z == 1 else f"({index_text(index_in(warp.block, self.grid))})"
        return f"block {block} warp {warp.warp}"

    def position_text(self, warp: StuckWarp) -> str:
        """``at`` the place of a warp; ``ended at exit PTX:70 tile.cu:31`` of one that ended, ``ended`` if there are
        several exits.
        """
        if warp not in self.ended_warps:
            return warp.place.at_text
        line = self.code.exits.get(warp.place.line)
        return "ended" if line is None else f"ended at {self.code.line_text(line, 'exit')}"

    def arrivals_at(self, place: WarpPlace, block: int) -> Arrivals:
        """The last arrivals of the warps of a block, if they were at an mbarrier."""
        marks = {
            warp.warp: warp.last_operation
            for warp in self.warps
            if warp.block == block and warp.last_operation is not None and warp.last_operation.address == place.address
        }
        counts = [self.code.mbarrier_arrival_counts.get(mark.line, 1) for mark in marks.values()]
        threads = sum(mark.lanes.bit_count() for mark in marks.values())
        count_sum = (
            None
            if None in counts
            else sum(mark.lanes.bit_count() * (count or 0) for mark, count in zip(marks.values(), counts, strict=True))
        )
        return Arrivals(count_sum, threads, marks)


def group_warps(
    warps: Sequence[StuckWarp], ended_warps: Sequence[StuckWarp] = (), code: Synchronization | None = None
) -> tuple[PlaceGroup, ...]:
    """Group warps by place, those with most warps first."""
    counting_barriers = {} if code is None else code.barriers
    by_place: dict[WarpPlace, list[StuckWarp]] = defaultdict(list)
    by_block: dict[int, list[StuckWarp]] = defaultdict(list)
    for warp in warps:
        by_place[warp.place].append(warp)
        by_block[warp.block].append(warp)
    groups = []
    for place, place_warps in by_place.items():
        blocks = dict.fromkeys(warp.block for warp in place_warps)
        other_warps = [warp for block in blocks for warp in by_block[block] if warp.place != place]
        counts_ended = place.kind == "mbarrier" or place.line in counting_barriers
        ended_missing = [warp for warp in ended_warps if warp.block in blocks] if counts_ended else []
        missing_warps = (*other_warps, *ended_missing) if place.kind in ("barrier", "mbarrier") else ()
        groups.append(PlaceGroup(place, tuple(place_warps), missing_warps))
    return tuple(sorted(groups, key=lambda group: -len(group.warps)))


def lanes_text(mask: int) -> str:
    """``lane 0``, ``lanes 1-31``, ``all lanes``."""
    if mask == ALL_LANES:
        return "all lanes"
    return units.numbered("lane", [lane for lane in range(WARP_SIZE) if mask >> lane & 1])


def warps_text(numbers: Sequence[int]) -> str:
    """``warp 0``, ``warps 0-2``."""
    return units.numbered("warp", numbers)

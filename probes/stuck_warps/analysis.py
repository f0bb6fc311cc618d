"""Places of the warps of a launch that did not end, grouped, with the warps that others wait for, and their texts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import place as place_text
from tui_probe.trace.kernel_files import Offset
from tui_probe.trace.sites import read_sites

from .synchronization import Synchronization, innermost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.results import Result
    from tui_probe.trace.source_lines import SourceLine

LANES: Final = np.dtype([("entered", "<u4"), ("left", "<u4")])
WARP: Final = np.dtype([("launch", "<u8"), ("block", "<u4"), ("warp", "<u4")])
MARK: Final = np.dtype([("address", "<u8"), ("line", "<u4"), ("lanes", "<u4")])
SAW: Final = np.dtype([("value", "<u8"), ("line", "<u4"), ("unused", "<u4")])
_MAPS: Final = (LANES, WARP, MARK, MARK, MARK, SAW)
_PHASE_BIT: Final = 63
_ADDRESS: Final = (1 << _PHASE_BIT) - 1
WARP_THREADS: Final = 32
_ALL_LANES: Final = 0xFFFFFFFF
_MOST_RANGES: Final = 4

PlaceKind = Literal["entry", "loop", "barrier", "warp barrier", "mbarrier", "lock", "flag", "shared flag"]
_KINDS: Final[Mapping[str, PlaceKind]] = {
    "loop": "loop",
    "barrier": "barrier",
    "chosen_barrier": "barrier",
    "other_barrier": "barrier",
    "warp_barrier": "warp barrier",
    "wait_for_phase": "mbarrier",
    "wait_for_state": "mbarrier",
    "poll": "flag",
    "poll_vector": "flag",
    "poll_shared": "shared flag",
    "poll_atomic": "flag",
    "lock_32": "lock",
    "lock_64": "lock",
    "lock_by_exchange": "lock",
}
"""Kinds of places by the points of the probe."""
_POLLING: Final = frozenset(
    {"wait_for_phase", "wait_for_state", "poll", "poll_vector", "poll_shared", "poll_atomic", "lock_32", "lock_64"}
)
_WITHOUT_ADDRESS: Final = frozenset({"loop", "other_barrier", "stay"})
_NUMBERED: Final = "barrier"
"""Barriers whose number is in the code."""
_SASS_POINTS: Final = frozenset({"stay_at_access", "stay"})
_SASS_KINDS: Final[Mapping[str, PlaceKind]] = {
    "BAR": "barrier", "UCGABAR": "barrier", "SYNCS": "mbarrier", "LD": "flag", "LDG": "flag",
    "ATOM": "lock", "ATOMG": "lock", "ATOMS": "lock",
}  # fmt: skip
"""Kinds of places by operations of SASS; others are heads of loops."""
_BEFORE_PLACES: Final = "before its first loop or wait"
_COUNTS: Final = 1 << 32
"""Counts of lanes start again at 0."""


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

    ``took`` is the lock that it took last, unless it gave it back as the last thing that it did. ``saw`` is the value
    that it read last at its place, where that polls. ``on_gpu`` counts its lanes that have not ended.
    ``polled`` is where it polled last in the loop around its barrier. A warp that has ended keeps its last place.
    """

    block: int
    warp: int
    place: WarpPlace
    lanes: int
    took: Mark | None
    did: Mark | None
    saw: int | None = None
    on_gpu: int = WARP_THREADS
    polled: WarpPlace | None = None

    @property
    def has_ended(self) -> bool:
        """True if it has no lane on the GPU."""
        return not self.on_gpu

    @property
    def lanes_away(self) -> int:
        """Lanes that have not ended, and did not come to the warp's place."""
        return max(self.on_gpu - self.lanes.bit_count(), 0)


@dataclass(frozen=True, slots=True)
class PlaceGroup:
    """The warps at one place. ``missing`` are the other warps of their blocks that are on the GPU, by place, then those
    that ended, if the place counts them.
    """

    place: WarpPlace
    warps: tuple[StuckWarp, ...]
    missing: tuple[StuckWarp, ...] = ()

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

    ``ended``: warps that have ended, where no other warp has taken their slot on the GPU since.
    """

    grid: Dim3
    block: Dim3
    groups: tuple[PlaceGroup, ...]
    code: Synchronization = field(default_factory=Synchronization)
    ended: tuple[StuckWarp, ...] = ()

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
        return -(-x * y * z // WARP_THREADS)

    @property
    def grid_blocks(self) -> int:
        """Blocks of the grid."""
        x, y, z = self.grid
        return x * y * z

    @property
    def blocks_not_started(self) -> int:
        """Blocks behind the last one that is known: blocks start in the order of their numbers."""
        last = self.grid_blocks - 1
        return last - max((warp.block for warp in (*self.warps, *self.ended)), default=last)

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
        ended = sum(
            min(WARP_THREADS, x * y * z - warp.warp * WARP_THREADS) for warp in self.ended if warp.block == block
        )
        return x * y * z - ended - sum(warp.on_gpu for warp in self.warps if warp.block == block)

    def writers(self, place: WarpPlace) -> list[StuckWarp]:
        """The warps whose last write was to the address that a place polls, not those that poll by writing."""
        return [
            warp
            for warp in self.warps
            if warp.did is not None and warp.did.address == place.address and warp.did.line != place.line
        ]

    def holder(self, address: int) -> StuckWarp | None:
        """The warp that took a lock last."""
        return next((warp for warp in self.warps if warp.took is not None and warp.took.address == address), None)

    def ended_holder(self, address: int) -> StuckWarp | None:
        """A warp that ended and had taken a lock last."""
        return next((warp for warp in self.ended if warp.took is not None and warp.took.address == address), None)

    def warp_text(self, warp: StuckWarp) -> str:
        """``block 3 warp 1``, with the block's coordinates in a grid of more than one dimension."""
        x, y, z = self.grid
        index = warp.block
        block = str(index) if y * z == 1 else f"({index % x},{index // x % y},{index // (x * y)})"
        return f"block {block} warp {warp.warp}"

    def where(self, warp: StuckWarp) -> str:
        """``at`` the place of a warp; ``ended at exit PTX:70 tile.cu:31`` of one that ended, ``ended`` if there are
        several exits.
        """
        if warp not in self.ended:
            return warp.place.at_text
        line = self.code.exits.get(warp.place.line)
        return "ended" if line is None else f"ended at {self.code.line_text(line, 'exit')}"

    def arrived(self, place: WarpPlace, block: int) -> Arrivals:
        """The last arrivals of the warps of a block, if they were at an mbarrier."""
        marks = {
            warp.warp: warp.did
            for warp in self.warps
            if warp.block == block and warp.did is not None and warp.did.address == place.address
        }
        counts = [self.code.arrivals.get(mark.line, 1) for mark in marks.values()]
        threads = sum(mark.lanes.bit_count() for mark in marks.values())
        known = (
            None
            if None in counts
            else sum(mark.lanes.bit_count() * (count or 0) for mark, count in zip(marks.values(), counts, strict=True))
        )
        return Arrivals(known, threads, marks)


def analyse(result: Result, folder: Path | None = None) -> StuckWarps:
    """The warps of a launch; ``folder`` is its kernel's in the trace. TraceError if the result is of another probe."""
    if len(result.sections) != len(_MAPS):
        raise TraceError(f"{result.path}: the records are not from stuck_warps; another probe wrote the file")
    shape, at = result.header, result.one_record(2, MARK)["line"]
    code = Synchronization.of(folder, shape.grid, shape.block, {int(line) for line in np.unique(at[_ended(result)])})
    known, has_ended = list(_warps(result, _Places(folder, code))), _ended(result).any()
    ended = [warp for warp in known if has_ended and warp.has_ended]
    warps = [_with_polled_address(warp, code) for warp in known if not (has_ended and warp.has_ended)]
    warps = list(with_polling_blocks(warps, code))
    return StuckWarps(shape.grid, shape.block, group_warps(warps, ended, code), code, tuple(ended))


def _ended(result: Result) -> NDArray[np.bool_]:
    """The warps that had ended when the places were read; none if all warps of the launch had."""
    lanes, written = result.one_record(0, LANES), result.written(1)
    if written is None:
        raise TraceError(f"{result.path}: the file does not show which records were written")
    is_there = written[:, :, 0].astype(bool)
    ended: NDArray[np.bool_] = (lanes["entered"] == lanes["left"]) & is_there
    return np.zeros_like(ended) if np.array_equal(ended, is_there) else ended


def _with_polled_address(warp: StuckWarp, code: Synchronization) -> StuckWarp:
    """A warp in a loop around an atomic polls with it."""
    if warp.place.kind != "loop" or warp.did is None or warp.did.line not in code.loops.get(warp.place.line, ()):
        return warp
    opcode, line = code.writes.get(warp.did.line, ""), warp.did.line
    if not opcode.startswith("atom"):
        return warp
    source = warp.place.source if line == warp.place.line else None
    return replace(warp, place=WarpPlace(line, "flag", warp.did.address, None, opcode, source))


def with_polling_blocks(warps: Sequence[StuckWarp], code: Synchronization) -> Iterator[StuckWarp]:
    """Move warps to where they poll, if all warps of their block are at barriers of one loop that polls: the block
    goes around, as Triton takes a lock.
    """
    loops: dict[int, set[frozenset[int]]] = defaultdict(set)
    for warp in warps:
        inside = innermost(code.loops, warp.place.line) if warp.place.kind == "barrier" else frozenset[int]()
        loops[warp.block].add(inside)
    for warp in warps:
        goes_around = len(loops[warp.block]) == 1 and warp.polled is not None
        yield replace(warp, place=warp.polled) if goes_around and warp.polled else warp


class _Places:
    """The places of a kernel, by their lines. The head of a loop that waits at one place counts as that place, whose
    address is still in the record.
    """

    def __init__(self, folder: Path | None, code: Synchronization) -> None:
        self._code = code
        probes = read_sites(folder) if folder is not None else None
        sites = [site for probe in probes or () for site in probe.sites]
        self._kinds = {
            site.instruction.line: (point, site)
            for site in sites
            for point in site.points
            if point in _KINDS or point in _SASS_POINTS
        }

    def at(self, line: int, address: int) -> WarpPlace:
        """The place of a mark."""
        if line not in self._kinds:
            return WarpPlace(line, "loop" if line else "entry")
        line = self._wait_of(line)
        point, site = self._kinds[line]
        if point in _WITHOUT_ADDRESS:
            address = 0
        elif point == _NUMBERED:
            address = self._code.numbers.get(line, 0)
        source = site.instruction.call or site.instruction.source or site.following
        phase = address >> _PHASE_BIT if point in ("wait_for_phase", "wait_for_state") else None
        opcode = site.instruction.opcode
        kind = _KINDS[point] if point in _KINDS else _SASS_KINDS.get(opcode.partition(".")[0], "loop")
        if site.instruction.line in self._code.updates:
            kind, address = "loop", 0
        return WarpPlace(site.instruction.line, kind, address & _ADDRESS, phase, opcode, source)

    def polled(self, line: int, barrier: int, address: int) -> WarpPlace | None:
        """The place at which a warp polled in the loop around its barrier, whose record keeps the address."""
        is_kept = barrier in self._kinds and self._kinds[barrier][0] == _NUMBERED
        inside = innermost(self._code.loops, barrier) if is_kept else frozenset[int]()
        return self.at(line, address) if line in inside and line in self._kinds else None

    def _wait_of(self, line: int) -> int:
        """The place in whose innermost loop a line is the head, if it is the only one; else the line itself."""
        loop = self._code.loops.get(line) if self._kinds[line][0] == "loop" else None
        waits = [
            place
            for place, (point, _) in self._kinds.items()
            if loop and place in loop and point in _POLLING and innermost(self._code.loops, place) == loop
        ]
        return waits[0] if len(waits) == 1 else line


def _warps(result: Result, places: _Places) -> Iterator[StuckWarp]:
    warps, written = result.one_record(1, WARP), result.written(1)
    counts = result.one_record(0, LANES)
    marks = [result.one_record(index, MARK) for index in (2, 3, 4)]
    values = result.one_record(5, SAW)
    if written is None:
        raise TraceError(f"{result.path}: the file does not show which records were written")
    for block, warp in np.argwhere(written[:, :, 0]).tolist():
        at, took, did = (_mark(records[block, warp]) for records in marks)
        line, address, lanes = (at.line, at.address, at.lanes) if at else (0, 0, 0)
        is_released = took is not None and did is not None and did.address == took.address
        number = int(warps[block, warp]["block"])
        place = places.at(line, address)
        saw = values[block, warp] if place.kind in ("flag", "shared flag", "lock") else None
        value = int(saw["value"]) if saw is not None and saw["line"] == place.line and not _is_sass(place) else None
        on_gpu = int(counts[block, warp]["entered"]) - int(counts[block, warp]["left"])
        polled = places.polled(int(values[block, warp]["line"]), line, address) if place.kind == "barrier" else None
        if polled is not None:
            value = int(values[block, warp]["value"])
        held = None if is_released else took
        yield StuckWarp(number, warp, place, lanes, held, did, value, on_gpu % _COUNTS, polled)


def _is_sass(place: WarpPlace) -> bool:
    return isinstance(place.line, Offset)


def _mark(record: np.void) -> Mark | None:
    """The mark of a record; None for one that says nothing."""
    mark = Mark(int(record["line"]), int(record["address"]), int(record["lanes"]))
    return mark if mark.lanes else None


def group_warps(
    warps: Sequence[StuckWarp], ended: Sequence[StuckWarp] = (), code: Synchronization | None = None
) -> tuple[PlaceGroup, ...]:
    """Group warps by place, those with most warps first."""
    counting = {} if code is None else code.barriers
    by_place: dict[WarpPlace, list[StuckWarp]] = defaultdict(list)
    by_block: dict[int, list[StuckWarp]] = defaultdict(list)
    for warp in warps:
        by_place[warp.place].append(warp)
        by_block[warp.block].append(warp)
    groups = []
    for place, there in by_place.items():
        blocks = dict.fromkeys(warp.block for warp in there)
        away = [other for block in blocks for other in by_block[block] if other.place != place]
        counts_ended = place.kind == "mbarrier" or place.line in counting
        gone = [warp for warp in ended if warp.block in blocks] if counts_ended else []
        missing = (*away, *gone) if place.kind in ("barrier", "mbarrier") else ()
        groups.append(PlaceGroup(place, tuple(there), missing))
    return tuple(sorted(groups, key=lambda group: -len(group.warps)))


# Numbers in words


def lane_words(mask: int) -> str:
    """``lane 0``, ``lanes 1-31``, ``all lanes``."""
    if mask == _ALL_LANES:
        return "all lanes"
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    return f"{'lane' if len(lanes) == 1 else 'lanes'} {range_words(lanes)}"


def warp_words(numbers: Sequence[int]) -> str:
    """``warp 0``, ``warps 0-2``."""
    return f"{'warp' if len(numbers) == 1 else 'warps'} {range_words(numbers)}"


def range_words(numbers: Iterable[int]) -> str:
    """``0-2, 5``; of many ranges the first ones, and how many numbers there are."""
    ordered = sorted(set(numbers))
    ranges = _ranges(ordered)
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_MOST_RANGES]]
    more = f", … ({units.count(len(ordered))})" if len(ranges) > _MOST_RANGES else ""
    return ", ".join(texts) + more


def _ranges(ordered: Sequence[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for number in ordered:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return ranges

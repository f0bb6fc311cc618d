"""Records of the probe, read as the place of each warp of a launch that did not end."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.trace.kernel_files import Offset
from tui_probe.trace.sites import read_sites

from .code_flow import innermost
from .places import Mark, StuckWarp, StuckWarps, WarpPlace, group_warps
from .synchronization import Synchronization

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.results import Result

    from .places import PlaceKind


class RecordMap(IntEnum):
    """The maps of ``probe.toml``, in the order in which a result has them."""

    LANES = 0
    WARP = 1
    AT = 2
    TOOK = 3
    DID = 4
    SAW = 5


_MARK: Final = np.dtype([("address", "<u8"), ("line", "<u4"), ("lanes", "<u4")])
RECORDS: Final[Mapping[RecordMap, np.dtype[Any]]] = {
    RecordMap.LANES: np.dtype([("entered", "<u4"), ("left", "<u4")]),
    RecordMap.WARP: np.dtype([("launch", "<u8"), ("block", "<u4"), ("warp", "<u4")]),
    RecordMap.AT: _MARK,
    RecordMap.TOOK: _MARK,
    RecordMap.DID: _MARK,
    RecordMap.SAW: np.dtype([("value", "<u8"), ("line", "<u4"), ("unused", "<u4")]),
}
"""The record of each map; a warp of the launch has one in each."""
_PHASE_BIT: Final = 63
"""Bit of an address that is the parity of the awaited phase: addresses of memory have fewer bits."""
_ADDRESS_MASK: Final = (1 << _PHASE_BIT) - 1
_COUNTER_PERIOD: Final = 1 << 32
"""The counts of lanes are u32, and wrap."""

POINT_KINDS: Final[Mapping[str, PlaceKind]] = {
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
SASS_POINTS: Final = frozenset({"stay_at_access", "stay"})
_POLLING: Final = frozenset(
    {"wait_for_phase", "wait_for_state", "poll", "poll_vector", "poll_shared", "poll_atomic", "lock_32", "lock_64"}
)
_WITH_PHASE: Final = frozenset({"wait_for_phase", "wait_for_state"})
_WITHOUT_ADDRESS: Final = frozenset({"loop", "other_barrier", "stay"})
_NUMBERED_BARRIER: Final = "barrier"
"""Barriers whose number is in the code."""
_SASS_KINDS: Final[Mapping[str, PlaceKind]] = {
    "BAR": "barrier", "UCGABAR": "barrier", "SYNCS": "mbarrier", "LD": "flag", "LDG": "flag",
    "ATOM": "lock", "ATOMG": "lock", "ATOMS": "lock",
}  # fmt: skip
"""Kinds of places by operations of SASS; others are heads of loops."""


def analyse(result: Result, folder: Path | None = None) -> StuckWarps:
    """The warps of a launch; ``folder`` is its kernel's in the trace. TraceError if the result is of another probe."""
    if len(result.sections) != len(RecordMap):
        raise TraceError(f"{result.path}: the records are not from stuck_warps; another probe wrote the file")
    shape, ended_slots = result.header, _ended_slots(result)
    last_lines = _records(result, RecordMap.AT)["line"][ended_slots]
    code = Synchronization.read(folder, shape.grid, shape.block, {int(line) for line in np.unique(last_lines)})
    all_warps = list(_read_warps(result, _Places(folder, code)))
    ended_warps = [warp for warp in all_warps if warp.has_ended] if ended_slots.any() else []
    resident = [warp for warp in all_warps if not warp.has_ended] if ended_slots.any() else all_warps
    warps = list(with_polling_blocks([_move_to_poll(warp, code) for warp in resident], code))
    return StuckWarps(shape.grid, shape.block, group_warps(warps, ended_warps, code), code, tuple(ended_warps))


def _records(result: Result, record_map: RecordMap) -> NDArray[Any]:
    """The records of a map: shape (blocks, warps per block)."""
    return result.one_record(record_map, RECORDS[record_map])


def _written_slots(result: Result) -> NDArray[np.bool_]:
    """The slots that belong to a warp of the launch: shape (blocks, warps per block)."""
    is_written = result.written_mask(RecordMap.WARP)
    if is_written is None:
        raise TraceError(f"{result.path}: the file does not show which records were written")
    return is_written[:, :, 0].astype(bool)


def _ended_slots(result: Result) -> NDArray[np.bool_]:
    """The slots of warps that had ended when the places were read; none if all warps of the launch had."""
    lanes, is_written = _records(result, RecordMap.LANES), _written_slots(result)
    has_ended: NDArray[np.bool_] = (lanes["entered"] == lanes["left"]) & is_written
    return np.zeros_like(has_ended) if np.array_equal(has_ended, is_written) else has_ended


def _move_to_poll(warp: StuckWarp, code: Synchronization) -> StuckWarp:
    """A warp in a loop around an atomic polls with it."""
    if (
        warp.place.kind != "loop"
        or warp.last_operation is None
        or warp.last_operation.line not in code.loops.get(warp.place.line, ())
    ):
        return warp
    opcode, line = code.write_opcodes.get(warp.last_operation.line, ""), warp.last_operation.line
    if not opcode.startswith("atom"):
        return warp
    source = warp.place.source if line == warp.place.line else None
    return replace(warp, place=WarpPlace(line, "flag", warp.last_operation.address, None, opcode, source))


def with_polling_blocks(warps: Sequence[StuckWarp], code: Synchronization) -> Iterator[StuckWarp]:
    """Move warps to where they poll, if all warps of their block are at barriers of one loop that polls: the block
    goes around, as Triton takes a lock.
    """
    loops: dict[int, set[frozenset[int]]] = defaultdict(set)
    for warp in warps:
        loop_lines = innermost(code.loops, warp.place.line) if warp.place.kind == "barrier" else frozenset[int]()
        loops[warp.block].add(loop_lines)
    for warp in warps:
        is_one_loop = len(loops[warp.block]) == 1
        yield replace(warp, place=warp.polled_place) if is_one_loop and warp.polled_place is not None else warp


class _Places:
    """The places of a kernel, by their lines. The head of a loop that waits at one place counts as that place, whose
    address is still in the record.
    """

    def __init__(self, folder: Path | None, code: Synchronization) -> None:
        self._code = code
        probes = read_sites(folder) if folder is not None else None
        sites = [site for probe in probes or () for site in probe.sites]
        self._sites = {
            site.instruction.line: (point, site)
            for site in sites
            for point in site.points
            if point in POINT_KINDS or point in SASS_POINTS
        }

    def place_at(self, line: int, address: int) -> WarpPlace:
        """The place of a mark."""
        if line not in self._sites:
            return WarpPlace(line, "loop" if line else "entry")
        point, site = self._sites[self._wait_of(line)]
        instruction = site.instruction
        opcode, source = instruction.opcode, instruction.call or instruction.source or site.following
        if instruction.line in self._code.lock_free_updates:
            return WarpPlace(instruction.line, "loop", 0, None, opcode, source)
        if point in _WITHOUT_ADDRESS:
            address = 0
        elif point == _NUMBERED_BARRIER:
            address = self._code.barrier_numbers.get(instruction.line, 0)
        phase = address >> _PHASE_BIT if point in _WITH_PHASE else None
        kind = POINT_KINDS.get(point) or _SASS_KINDS.get(opcode.partition(".")[0], "loop")
        return WarpPlace(instruction.line, kind, address & _ADDRESS_MASK, phase, opcode, source)

    def polled_place(self, line: int, barrier: int, address: int) -> WarpPlace | None:
        """The place at which a warp polled in the loop around its barrier, whose record keeps the address."""
        is_kept = barrier in self._sites and self._sites[barrier][0] == _NUMBERED_BARRIER
        loop_lines = innermost(self._code.loops, barrier) if is_kept else frozenset[int]()
        return self.place_at(line, address) if line in loop_lines and line in self._sites else None

    def _wait_of(self, line: int) -> int:
        """The place in whose innermost loop a line is the head, if it is the only one; else the line itself."""
        loop = self._code.loops.get(line) if self._sites[line][0] == "loop" else None
        waits = [
            place
            for place, (point, _) in self._sites.items()
            if loop and place in loop and point in _POLLING and innermost(self._code.loops, place) == loop
        ]
        return waits[0] if len(waits) == 1 else line


def _read_warps(result: Result, places: _Places) -> Iterator[StuckWarp]:
    lanes, warps, place_records, lock_records, operation_records, value_records = (
        _records(result, record_map) for record_map in RecordMap
    )
    for slot in map(tuple, np.argwhere(_written_slots(result)).tolist()):
        place_mark, lock_mark, operation_mark = (
            _mark(records[slot]) for records in (place_records, lock_records, operation_records)
        )
        is_released = (
            lock_mark is not None and operation_mark is not None and operation_mark.address == lock_mark.address
        )
        line, address, arrived_lanes = (
            (place_mark.line, place_mark.address, place_mark.lanes) if place_mark else (0, 0, 0)
        )
        place = places.place_at(line, address)
        polled = (
            places.polled_place(int(value_records[slot]["line"]), line, address) if place.kind == "barrier" else None
        )
        yield StuckWarp(
            block=int(warps[slot]["block"]),
            warp=slot[1],
            place=place,
            lanes=arrived_lanes,
            held_lock=None if is_released else lock_mark,
            last_operation=operation_mark,
            read_value=int(value_records[slot]["value"])
            if polled is not None or _reads_value(place, value_records[slot])
            else None,
            lanes_on_gpu=(int(lanes[slot]["entered"]) - int(lanes[slot]["left"])) % _COUNTER_PERIOD,
            polled_place=polled,
        )


def _reads_value(place: WarpPlace, value_record: np.void) -> bool:
    """Return whether the value that a warp read last is of its place. In SASS, no value is recorded."""
    has_value = place.kind in ("flag", "shared flag", "lock") and not isinstance(place.line, Offset)
    return has_value and int(value_record["line"]) == place.line


def _mark(record: np.void) -> Mark | None:
    """The mark of a record; None for one that says nothing."""
    mark = Mark(int(record["line"]), int(record["address"]), int(record["lanes"]))
    return mark if mark.lanes else None

"""PTX that finds the place of the next record (``SAVE``) in maps of several records per slot.

A slot is a row or a queue of records (``CountedRecords``); lane 0 may save a queue for its warp (``LeaderRecords``), or
two lanes save a row whose value rises evenly over all lanes (``EvenLanes``). Registers that live as long as the kernel
hold where the slot is, and how many records were to be saved. Everything else is computed where it is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.probe_model.storage import (
    COUNT_BYTES,
    EVEN_MARK,
    QUEUE_HEADER,
    STRAY_COUNT_OFFSET,
    storage_of,
)
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from tui_probe.engine.addressing import Addressing
    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.probe_model.probe import Map, Probe


NO_ROOM: Final = 0x80000000
"""Attempts of a lane that never saves."""


@dataclass(frozen=True, slots=True)
class RecordAddress:
    """Address of a record: from ``address + offset`` on, its columns ``pitch`` bytes apart, with 0 side by side.

    Only lanes in which ``predicate`` holds may write; "" stands for all lanes that arrive.
    """

    address: str
    offset: int
    pitch: int
    predicate: str = ""


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """Position of a record among the ``count`` records that lane 0 saves in one basic block, in order.

    ``samples_iterations``: only the records of some iterations of the loop around are saved; ``begins_iteration``: an
    iteration begins here.
    """

    index: int = 0
    count: int = 1
    samples_iterations: bool = False
    begins_iteration: bool = False

    @property
    def is_last(self) -> bool:
        """Return whether no other record of the block follows."""
        return self.index == self.count - 1


class MapRecords(ABC):
    """PTX text for the records of one map of a probe in one kernel."""

    def __init__(self, probe: Probe, own_map: Map, names: UnusedNames, addressing: Addressing) -> None:
        self._probe, self._map = probe, own_map
        self._names, self._addressing = names, addressing
        self._storage = storage_of(probe, own_map)

    @abstractmethod
    def locate(self, skip: str, position: RecordPosition) -> tuple[list[str], RecordAddress]:
        """Return the lines that find the address of the next record, and the address. Lanes that save none branch to
        ``skip``, or the address has a predicate. Only ``leader`` maps have records at several positions.
        """

    @property
    def _parameter(self) -> str:
        return self._names.parameter("map", self._map.name)

    def _skip_higher_lanes(self, skip: str) -> list[str]:
        """Return the lines that skip all but the lowest active lane. Lane 0 may have left, or not take part."""
        lanes, lower_lanes, has_lower = self._b32("lanes"), self._b32("lower"), self._predicate("follows")
        return [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower_lanes}, %lanemask_lt;",
            f"and.b32 {lanes}, {lanes}, {lower_lanes};",
            f"setp.ne.u32 {has_lower}, {lanes}, 0;",
            f"@{has_lower} bra {skip};",
        ]

    def _b32(self, name: str) -> str:
        return self._names.temporary(name, "b32")

    def _predicate(self, name: str) -> str:
        return self._names.temporary(name, "pred")


class CountedRecords(MapRecords):
    """Several records of each thread or warp, with a count of those that were to be saved."""

    @abstractmethod
    def begin(self, warp: str, lane: str) -> list[str]:
        """Return lines for the entry that set ``place``, from the registers of the warp's number and the lane."""

    @abstractmethod
    def end(self) -> list[str]:
        """Return lines for an exit that store the number of records that were to be saved."""

    @property
    def place_registers(self) -> list[str]:
        """Return the registers, 32 bits each, of the place where the lane's or the warp's records begin."""
        return [self.place]

    @property
    def place(self) -> str:
        """Return the register of the index of the lane's unit in a row of counts, or, for a queue, of the warp's
        number.
        """
        return self._b32(f"place_{self._map.name}")

    @property
    def attempts(self) -> str:
        """Return the register of the number of records that were to be saved so far."""
        return attempts_register(self._names, self._map)

    @property
    def iteration(self) -> str:
        """Return the register of the iteration of the innermost loop, from 0; -1 outside."""
        return self._b32(f"iteration_of_{self._map.name}")

    def _cap(self) -> tuple[list[str], str]:
        """Return the lines that load the cap, and the cap: a number or a register."""
        if self._map.cap is not None:
            return [], str(self._map.cap)
        cap = self._b32("cap")
        return [f"ld.param.u32 {cap}, [{self._names.parameter('cap', self._map.name)}];"], cap

    def _stride(self, slot_bytes: int, header: int) -> tuple[list[str], str]:
        """Return the lines and the register, or the number, of ``header + cap × slot_bytes``."""
        if self._storage.cap:
            return [], str(header + self._storage.cap * slot_bytes)
        cap_lines, cap = self._cap()
        stride = self._b32("stride")
        return [*cap_lines, f"mad.lo.u32 {stride}, {cap}, {slot_bytes}, {header};"], stride

    def _unit_address(self, index: str, unit: int) -> list[str]:
        """Return the lines for the address of a unit by its index in the map."""
        base = self._names.temporary("wide", "b64")
        return [
            f"ld.param.u64 {base}, [{self._parameter}];",
            f"mad.wide.u32 {self._addressing.address}, {index}, {unit}, {base};",
        ]


class RowRecords(CountedRecords):
    """Records of threads: those with the same number of all lanes of a warp side by side, behind a row of counts."""

    def begin(self, warp: str, lane: str) -> list[str]:
        stride_lines, stride = self._stride(WARP_SIZE * self._storage.columns, WARP_SIZE)
        return [*stride_lines, f"mad.lo.u32 {self.place}, {warp}, {stride}, {lane};"]

    def locate(self, _skip: str, _position: RecordPosition) -> tuple[list[str], RecordAddress]:
        room, index, attempts = self._predicate("room"), self._b32("index"), self.attempts
        cap_lines, cap = self._cap()
        lines = [
            *cap_lines,
            f"setp.lt.u32 {room}, {attempts}, {cap};",
            f"mad.lo.u32 {index}, {attempts}, {WARP_SIZE * self._storage.columns}, {self.place};",
            f"add.u32 {attempts}, {attempts}, 1;",
            *self._unit_address(index, self._storage.unit),
        ]
        row = WARP_SIZE * self._storage.unit
        return lines, RecordAddress(self._addressing.address, row, row, room)

    def end(self) -> list[str]:
        count = self._b32("index")
        return [
            *self._count_address(),
            f"add.u32 {count}, {self.attempts}, 1;",
            f"st.global.u32 [{self._addressing.address}], {count};",
        ]

    def _count_address(self) -> list[str]:
        """Return the lines for the address of the lane's count: counts lie side by side, so that a warp writes whole
        sectors.

        On an H200 copies that recorded all their accesses took 2.6 times as long so, and 4.4 times with a count every
        16 bytes.
        """
        place, lane, unit = self.place, self._b32("lane"), self._storage.unit
        address = self._addressing.address
        return [
            *self._unit_address(place, unit),
            f"and.b32 {lane}, {place}, {WARP_SIZE - 1};",
            f"mad.wide.s32 {address}, {lane}, {COUNT_BYTES - unit}, {address};",
        ]


class QueueRecords(CountedRecords):
    """Records of warps, written by the lowest active lane only: it is lane 0, whose own count is right, or comes from
    strays, which share a count and the room behind the warp's own records.
    """

    def begin(self, warp: str, _lane: str) -> list[str]:
        return [f"mov.u32 {self.place}, {warp};"]

    def locate(self, skip: str, _position: RecordPosition) -> tuple[list[str], RecordAddress]:
        address, index, lower_lanes = self._addressing.address, self._b32("index"), self._b32("lower")
        is_stray, is_full, attempts = self._predicate("stray"), self._predicate("full"), self.attempts
        cap_lines, cap = self._cap()
        lines = [
            *self._skip_higher_lanes(skip),
            *self._slot_address(),
            f"mov.u32 {index}, {attempts};",
            f"add.u32 {attempts}, {attempts}, 1;",
            f"setp.ne.u32 {is_stray}, {lower_lanes}, 0;",
            f"@{is_stray} atom.global.add.u32 {index}, [{address}+{STRAY_COUNT_OFFSET}], 1;",
            *cap_lines,
            f"setp.ge.u32 {is_full}, {index}, {cap};",
            f"@{is_full} bra {skip};",
            f"@{is_stray} add.u32 {index}, {index}, {cap};",
            f"mad.wide.u32 {address}, {index}, {self._storage.record_bytes}, {address};",
        ]
        return lines, RecordAddress(address, QUEUE_HEADER, 0)

    def complete(self) -> list[str]:
        """Return lines after which the host can read the record just stored and its count, even if the warp never
        ends.
        """
        address, count, is_stray = self._addressing.address, self._b32("index"), self._predicate("stray")
        return [
            *self._slot_address(),
            f"add.u32 {count}, {self.attempts}, 1;",
            f"@!{is_stray} st.global.u32 [{address}], {count};",
            f"@{is_stray} red.global.max.u32 [{address}], 1;",
            "membar.sys;",
        ]

    def end(self) -> list[str]:
        count, address_lines, is_leader = self._b32("index"), self._slot_address(), self._predicate("first")
        return [
            *address_lines,
            f"mov.u32 {count}, %laneid;",
            f"setp.eq.u32 {is_leader}, {count}, 0;",
            f"add.u32 {count}, {self.attempts}, 1;",
            f"@{is_leader} st.global.u32 [{self._addressing.address}], {count};",
        ]

    def _slot_address(self) -> list[str]:
        """Return the lines for the address of the warp's header, which its records follow."""
        stride_lines, stride = self._stride(2 * self._storage.record_bytes, QUEUE_HEADER)
        address, base = self._addressing.address, self._names.temporary("wide", "b64")
        return [
            f"ld.param.u64 {base}, [{self._parameter}];",
            *stride_lines,
            f"mad.wide.u32 {address}, {self.place}, {stride}, {base};",
        ]


class BranchlessQueueRecords(QueueRecords):
    """Records of a queue in grafts. Behind a branch, ptxas reads constants into ordinary and uniform registers; it
    makes a branch of ``atom.add`` itself, but not of ``atom.inc``.
    """

    def locate(self, _skip: str, _position: RecordPosition) -> tuple[list[str], RecordAddress]:
        address, index = self._addressing.address, self._b32("index")
        lanes, lower_lanes = self._b32("lanes"), self._b32("lower")
        is_stray, is_lowest, attempts = self._predicate("stray"), self._predicate("first"), self.attempts
        cap_lines, cap = self._cap()
        lines = [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower_lanes}, %lanemask_lt;",
            f"and.b32 {lanes}, {lanes}, {lower_lanes};",
            f"setp.eq.u32 {is_lowest}, {lanes}, 0;",
            f"setp.ne.and.u32 {is_stray}, {lower_lanes}, 0, {is_lowest};",
            *self._slot_address(),
            f"mov.u32 {index}, {attempts};",
            f"@{is_lowest} add.u32 {attempts}, {attempts}, 1;",
            f"@{is_stray} atom.global.inc.u32 {index}, [{address}+{STRAY_COUNT_OFFSET}], {NO_ROOM - 1};",
            *cap_lines,
            f"setp.lt.and.u32 {is_lowest}, {index}, {cap}, {is_lowest};",
            f"@{is_stray} add.u32 {index}, {index}, {cap};",
            f"mad.wide.u32 {address}, {index}, {self._storage.record_bytes}, {address};",
        ]
        return lines, RecordAddress(address, QUEUE_HEADER, 0, is_lowest)


class LeaderRecords(QueueRecords):
    """Records of warps by lane 0, which is known beforehand, so there is no branch.

    All records of a block use the address of its first one, which ptxas computes once, and are counted with its last
    one. So an event takes three instructions: clock, line and store. Records of a block that begins with room may
    exceed the cap: they are where strays would be.
    """

    def __init__(
        self, probe: Probe, own_map: Map, names: UnusedNames, addressing: Addressing, *, is_warp_uniform: bool
    ) -> None:
        """Name the map. ``is_warp_uniform``: the place is the address of the warp's first record, not its index."""
        super().__init__(probe, own_map, names, addressing)
        self._is_warp_uniform = is_warp_uniform

    @property
    def place_registers(self) -> list[str]:
        return self._halves if self._is_warp_uniform else [self.place]

    def begin(self, warp: str, lane: str) -> list[str]:
        """Return the lines that find the warp's first record. Other lanes begin with more attempts than there is
        room.
        """
        header, room = QUEUE_HEADER // self._storage.record_bytes, self._predicate("room")
        place_line = f"mad.lo.u32 {self.place}, {warp}, {header + 2 * self._storage.cap}, {header};"
        if self._is_warp_uniform:
            return [
                place_line,
                *self._unit_address(self.place, self._storage.record_bytes),
                f"mov.b64 {{{', '.join(self._halves)}}}, {self._addressing.address};",
            ]
        return [f"setp.ne.u32 {room}, {lane}, 0;", f"@{room} mov.u32 {self.attempts}, {NO_ROOM};", place_line]

    def locate(self, _skip: str, position: RecordPosition) -> tuple[list[str], RecordAddress]:
        room, index, attempts = self._predicate("room"), self._b32("index"), self.attempts
        number, cap = (index, NO_ROOM) if self._map.latest else (attempts, self._storage.cap)
        has_room, count = f"{room}, {attempts}, {cap}", f"add.u32 {attempts}, {attempts}, {position.count};"
        if position.samples_iterations:
            recorded = self._predicate("recorded")
            test, count = f"setp.lt.and.u32 {has_room}, {recorded};", f"@{recorded} {count}"
        else:
            test = f"setp.lt.u32 {has_room};"
        lines = [
            *(self._iteration_lines(position) if self._map.every else []),
            test,
            *([f"and.b32 {index}, {attempts}, {self._storage.cap - 1};"] if self._map.latest else []),
            f"add.u32 {index}, {self.place}, {number};",
            *([count] if position.is_last else []),
            *self._unit_address(index, self._storage.record_bytes),
        ]
        return lines, RecordAddress(self._addressing.address, position.index * self._storage.record_bytes, 0, room)

    def _iteration_lines(self, position: RecordPosition) -> list[str]:
        """Return lines after which ``recorded`` holds at the records to save of a loop; before it, no iteration has
        begun.

        The start of an iteration is saved in recorded iterations, and in those behind them: there the time begins in
        which nothing is saved.
        """
        iteration, number, recorded = self.iteration, self._b32("iteration"), self._predicate("recorded")
        if not position.samples_iterations:
            return [f"mov.u32 {iteration}, -1;"]
        return [
            *([f"add.u32 {iteration}, {iteration}, 1;"] if position.begins_iteration else []),
            f"and.b32 {number}, {iteration}, {self._map.every - (2 if position.begins_iteration else 1)};",
            f"setp.eq.u32 {recorded}, {number}, 0;",
        ]

    def _slot_address(self) -> list[str]:
        address, halves = self._addressing.address, ", ".join(self._halves)
        index_lines = self._unit_address(self.place, self._storage.record_bytes)
        first_record_lines = [f"mov.b64 {address}, {{{halves}}};"] if self._is_warp_uniform else index_lines
        return [*first_record_lines, f"add.s64 {address}, {address}, -{QUEUE_HEADER};"]

    @property
    def _halves(self) -> list[str]:
        """Return the registers of the address of a warp's first record."""
        return [self._b32(f"{half}_{self._map.name}") for half in ("low", "high")]


class EvenLanes:
    """PTX text for records of rows whose first value rises evenly from lane to lane: two lanes save for the warp."""

    def __init__(self, own_map: Map, names: UnusedNames) -> None:
        self._map, self._names = own_map, names

    def detect(self, value: str) -> list[str]:
        """Return lines after which ``writes`` holds in the lanes that save a record: all, or two of a warp with
        ``alike``.

        In these warps 64-bit ``value`` rises evenly from lane to lane, and all lanes have come to the same record.
        """
        lanes, lane, step = (self._b32(name) for name in ("lanes", "lane", "step"))
        low_word, high_word, first_value = (
            self._b32("low"),
            self._b32("high"),
            self._names.temporary("first_value", "b64"),
        )
        is_even, attempts = self._predicate("alike"), attempts_register(self._names, self._map)
        is_writer = self._predicate("writes")
        return [
            f"activemask.b32 {lanes};",
            f"mov.b64 {{{low_word}, {high_word}}}, {value};",
            f"shfl.sync.idx.b32 {step}, {low_word}, 1, 31, {lanes};",
            f"shfl.sync.idx.b32 {low_word}, {low_word}, 0, 31, {lanes};",
            f"shfl.sync.idx.b32 {high_word}, {high_word}, 0, 31, {lanes};",
            f"mov.b64 {first_value}, {{{low_word}, {high_word}}};",
            f"sub.u32 {step}, {step}, {low_word};",
            f"shfl.sync.idx.b32 {low_word}, {attempts}, 0, 31, {lanes};",
            f"mov.u32 {lane}, %laneid;",
            f"mad.wide.s32 {first_value}, {lane}, {step}, {first_value};",
            f"setp.eq.u64 {is_even}, {first_value}, {value};",
            f"setp.eq.and.u32 {is_even}, {low_word}, {attempts}, {is_even};",
            f"vote.sync.ballot.b32 {step}, {is_even}, {lanes};",
            f"setp.eq.u32 {is_even}, {step}, -1;",
            f"setp.ne.u32 {is_writer}, {step}, -1;",
            f"setp.le.or.u32 {is_writer}, {lane}, 1, {is_writer};",
        ]

    def limit(self, target: RecordAddress) -> tuple[list[str], RecordAddress]:
        """Return the lines behind ``detect`` that limit a place to the lanes that save, and the place."""
        is_writer = self._predicate("writes")
        return [f"and.pred {is_writer}, {is_writer}, {target.predicate};"], replace(target, predicate=is_writer)

    def mark(self, word: str) -> tuple[list[str], str]:
        """Return the lines that mark the last word of a record in warps with ``alike``, and the word's register."""
        marked_word = self._b32("marked")
        lines = [
            f"or.b32 {marked_word}, {word}, {EVEN_MARK};",
            f"selp.b32 {marked_word}, {marked_word}, {word}, {self._predicate('alike')};",
        ]
        return lines, marked_word

    def _b32(self, name: str) -> str:
        return self._names.temporary(name, "b32")

    def _predicate(self, name: str) -> str:
        return self._names.temporary(name, "pred")


def attempts_register(names: UnusedNames, own_map: Map) -> str:
    """Return the register of the number of a map's records that were to be saved so far by this lane."""
    return names.temporary(f"attempts_{own_map.name}", "b32")

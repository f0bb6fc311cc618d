"""Store records (``SAVE``): the place of the next record of a thread or warp, and the counts of records.

A map of several records per slot costs two registers that live as long as the kernel: where the slot is, and how many
records were to be saved. Everything else is computed where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.snippet import saves_uniform_values
from tui_probe.probe_model.probe import Level
from tui_probe.probe_model.storage import (
    COUNT_BYTES,
    EVEN_MARK,
    MARK_BYTES,
    QUEUE_HEADER,
    STRAY_COUNT_OFFSET,
    Layout,
    resident_offset,
    storage_of,
)
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from tui_probe.engine.addressing import Addressing
    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.probe_model.probe import Map, Probe
    from tui_probe.probe_model.storage import Storage


NO_ROOM: Final = 0x80000000
"""Attempts of a lane that never saves."""
NO_ROOM_OF_WARPS: Final = 0x40000000
"""Attempts of a warp that never saves, where the code of a record counts them."""


@dataclass(frozen=True, slots=True)
class RecordAddress:
    """Address of a record: from ``address + offset`` on, its columns ``pitch`` bytes apart, with 0 side by side.

    Only lanes in which the predicate ``where`` holds may write; "" is all that came so far.
    """

    address: str
    offset: int
    pitch: int
    where: str = ""


@dataclass(frozen=True, slots=True)
class RecordTurn:
    """A record's place among the ``count`` ones that lane 0 saves in one basic block, one after the other.

    ``counted``: only those of some iterations of the loop around are saved; ``begins``: an iteration begins here.
    """

    index: int = 0
    count: int = 1
    counted: bool = False
    begins: bool = False


class Recording:
    """PTX text that finds a record's place and counts it, for one probe in one kernel."""

    def __init__(
        self,
        probe: Probe,
        names: UnusedNames,
        addressing: Addressing,
        *,
        tail_in_use: bool = False,
        elects: bool = True,
        has_elect: bool = False,
        of_warps: bool = False,
    ) -> None:
        """``tail_in_use``: what is behind the mark of a slot is in use. ``elects``: one lane saves resident records,
        chosen by ``elect.sync`` where the GPU ``has_elect``; else all do, so that the code has no predicate.
        ``of_warps``: what lives throughout is the same in all lanes of a
        warp: the address of its first record, and the number of records.
        """
        self._of_warps = of_warps
        self._probe = probe
        self._elects = elects
        self._has_elect = has_elect
        self._tail_in_use = tail_in_use
        self._names = names
        self._addressing = addressing
        self._counted = [own_map for own_map in probe.maps if own_map.cap != 1]

    def begin(self) -> list[str]:
        """Return lines for the entry that set the registers of resident maps, and of maps with several records."""
        lines = self._begin_resident() if self._probe.is_resident else []
        if not self._counted:
            return lines
        warp, lane = self._b32("warp"), self._b32("lane")
        lines += self._addressing.warp(warp, lane)
        for own_map in self._counted:
            storage = storage_of(self._probe, own_map)
            lines.append(f"mov.u32 {self._attempts(own_map)}, 0;")
            lines += [f"mov.u32 {self._iteration(own_map)}, -1;"] if own_map.every else []
            if own_map.leader:
                lines += self._begin_leader(own_map, storage, warp, lane)
            elif storage.layout is Layout.QUEUE:
                lines.append(f"mov.u32 {self._place(own_map)}, {warp};")
            else:
                loaded, stride = self._stride(own_map, storage, WARP_SIZE * (storage.columns), WARP_SIZE)
                lines += [*loaded, f"mad.lo.u32 {self._place(own_map)}, {warp}, {stride}, {lane};"]
        return lines

    def _begin_resident(self) -> list[str]:
        """Lines for the slot of resident maps: its number, or the address, which costs a register more and each record
        two instructions less.
        """
        if not self._elects:
            return self._addressing.resident_slot()
        first = next(own_map for own_map in self._probe.maps if own_map.resident)
        return [
            *self._addressing.resident_address(self._parameter(first), resident_offset(self._probe)),
            *([] if self._has_elect else [f"mov.u32 {self._addressing.lane_bit}, %lanemask_eq;"]),
        ]

    def _begin_leader(self, own_map: Map, storage: Storage, warp: str, lane: str) -> list[str]:
        """The index of the warp's first record. Lanes that never save begin with more attempts than there is room."""
        header, room = QUEUE_HEADER // storage.record_bytes, self._pred("room")
        if self._of_warps:
            return [
                f"mad.lo.u32 {self._place(own_map)}, {warp}, {header + 2 * storage.cap}, {header};",
                *self._unit_address(own_map, self._place(own_map), storage.record_bytes),
                f"mov.b64 {{{', '.join(self._halves(own_map))}}}, {self._addressing.address};",
            ]
        return [
            f"setp.ne.u32 {room}, {lane}, 0;",
            f"@{room} mov.u32 {self._attempts(own_map)}, {NO_ROOM};",
            f"mad.lo.u32 {self._place(own_map)}, {warp}, {header + 2 * storage.cap}, {header};",
        ]

    def leader_attempts(self) -> list[str]:
        """Return the registers that count attempts of lane 0 only."""
        return [self._attempts(own_map) for own_map in self._counted if own_map.leader]

    def live_registers(self, own_map: Map | None = None) -> list[str]:
        """The registers that ``begin`` fills for a map, or for all, 32 bits each; none for most maps."""
        is_resident = self._probe.is_resident if own_map is None else own_map.resident
        of = (
            self._counted
            if own_map is None
            else [counted_map for counted_map in self._counted if counted_map == own_map]
        )
        places = [self._halves(counted) if self._of_warps else [self._place(counted)] for counted in of]
        names = [
            name
            for counted_map, place in zip(of, places, strict=True)
            for name in (*place, self._attempts(counted_map))
        ]
        names += [self._iteration(counted_map) for counted_map in of if counted_map.every]
        if not is_resident:
            return names
        if not self._elects:
            return [self._addressing.resident, *names]
        lane = [] if self._has_elect else [self._addressing.lane_bit]
        return [*self._addressing.resident_halves, *lane, *names]

    def end(self) -> list[str]:
        """Return lines for an exit, which store the number of records that were to be saved."""
        lines = []
        for own_map in self._counted:
            storage, count = storage_of(self._probe, own_map), self._b32("index")
            first = ""
            if storage.layout is Layout.QUEUE:
                lines += self._slot_of_queue(own_map, storage)
                lines += [f"mov.u32 {count}, %laneid;", f"setp.eq.u32 {self._pred('first')}, {count}, 0;"]
                first = f"@{self._pred('first')} "
            else:
                lines += self._count_address(own_map, storage.unit)
            lines.append(f"add.u32 {count}, {self._attempts(own_map)}, 1;")
            lines.append(f"{first}st.global.u32 [{self._addressing.address}], {count};")
        return lines

    def locate(self, own_map: Map, skip: str, turn: RecordTurn) -> tuple[list[str], RecordAddress]:
        """Return the place of the next record. Lanes that save none go to ``skip``, or are identified by ``where`` of
        the target. Only records of ``leader`` maps take turns.
        """
        storage = storage_of(self._probe, own_map)
        if storage.layout is Layout.ROWS:
            return self._in_rows(own_map, storage)
        if own_map.leader:
            return self._of_leader(own_map, storage, turn)
        if storage.layout is Layout.QUEUE:
            return self._in_queue(own_map, storage, skip)
        if storage.layout is Layout.RESIDENT:
            return self._in_resident(own_map)
        by_warp = own_map.level is Level.WARP
        is_uniform = saves_uniform_values(self._probe, own_map.name if self._of_warps else "")
        lines = self._lowest_lane(skip) if by_warp and not is_uniform else []
        if by_warp and storage.layout is Layout.MARKED:
            lines += self._addressing.marked_slot(self._parameter(own_map), storage.slot_bytes)
        else:
            lines += self._addressing.slot(own_map.level)
            lines += self._addressing.pointer(self._parameter(own_map), storage.slot_bytes)
        if storage.layout is Layout.MARKED:  # before the values are there, while registers are free
            lines += self._mark(storage)
        return lines, RecordAddress(self._addressing.address, 0, 0)

    def _mark(self, storage: Storage) -> list[str]:
        """The mark, with all that is behind it in the slot: a sector that is written whole need not be read before.

        On an H200 a kernel whose time is that of memory took 1.09 times as long without that, and 1.05 times with it.
        """
        place, units = f"{self._addressing.address}+{storage.record_bytes}", storage.unit // MARK_BYTES
        if self._tail_in_use or units == 1:
            return [f"st.global.u32 [{place}], 1;"]
        zero = self._b32("zero")
        values = ", ".join(["1", *[zero] * (units - 1)])
        return [f"mov.u32 {zero}, 0;", f"st.global.v{units}.u32 [{place}], {{{values}}};"]

    def _in_rows(self, own_map: Map, storage: Storage) -> tuple[list[str], RecordAddress]:
        room, index, attempts = self._pred("room"), self._b32("index"), self._attempts(own_map)
        loaded, cap = self._cap(own_map)
        lines = [
            *loaded,
            f"setp.lt.u32 {room}, {attempts}, {cap};",
            f"mad.lo.u32 {index}, {attempts}, {WARP_SIZE * storage.columns}, {self._place(own_map)};",
            f"add.u32 {attempts}, {attempts}, 1;",
            *self._unit_address(own_map, index, storage.unit),
        ]
        row = WARP_SIZE * storage.unit
        return lines, RecordAddress(self._addressing.address, row, row, room)

    def detect_even_lanes(self, own_map: Map, value: str) -> list[str]:
        """Lines after which ``writes`` holds in the lanes that save a record: all, or two of a warp with ``alike``.

        In these warps 64-bit ``value`` rises evenly from lane to lane, and all lanes have come to the same record.
        """
        lanes, lane, step = (self._b32(name) for name in ("lanes", "lane", "step"))
        low, high, first = self._b32("low"), self._b32("high"), self._names.temporary("first_value", "b64")
        alike, attempts = self._pred("alike"), self._attempts(own_map)
        return [
            f"activemask.b32 {lanes};",
            f"mov.b64 {{{low}, {high}}}, {value};",
            f"shfl.sync.idx.b32 {step}, {low}, 1, 31, {lanes};",
            f"shfl.sync.idx.b32 {low}, {low}, 0, 31, {lanes};",
            f"shfl.sync.idx.b32 {high}, {high}, 0, 31, {lanes};",
            f"mov.b64 {first}, {{{low}, {high}}};",
            f"sub.u32 {step}, {step}, {low};",
            f"shfl.sync.idx.b32 {low}, {attempts}, 0, 31, {lanes};",
            f"mov.u32 {lane}, %laneid;",
            f"mad.wide.s32 {first}, {lane}, {step}, {first};",
            f"setp.eq.u64 {alike}, {first}, {value};",
            f"setp.eq.and.u32 {alike}, {low}, {attempts}, {alike};",
            f"vote.sync.ballot.b32 {step}, {alike}, {lanes};",
            f"setp.eq.u32 {alike}, {step}, -1;",
            f"setp.ne.u32 {self._pred('writes')}, {step}, -1;",
            f"setp.le.or.u32 {self._pred('writes')}, {lane}, 1, {self._pred('writes')};",
        ]

    def even_lanes_target(self, target: RecordAddress) -> tuple[list[str], RecordAddress]:
        """The target behind ``detect_even_lanes``, for the lanes that save."""
        writes = self._pred("writes")
        return [f"and.pred {writes}, {writes}, {target.where};"], replace(target, where=writes)

    def mark_even(self, word: str) -> tuple[list[str], str]:
        """The last word of a record with the mark of warps with ``alike``."""
        marked = self._b32("marked")
        lines = [
            f"or.b32 {marked}, {word}, {EVEN_MARK};",
            f"selp.b32 {marked}, {marked}, {word}, {self._pred('alike')};",
        ]
        return lines, marked

    def _in_queue(self, own_map: Map, storage: Storage, skip: str) -> tuple[list[str], RecordAddress]:
        """Return the lines and address of a record in a queue, written by the lowest lane only.

        It is lane 0, whose own count is right, or comes from strays.
        """
        if not self._elects and not own_map.host:
            return self._in_queue_without_branch(own_map, storage)
        address, index, lower = self._addressing.address, self._b32("index"), self._b32("lower")
        stray, full, attempts = self._pred("stray"), self._pred("full"), self._attempts(own_map)
        loaded, cap = self._cap(own_map)
        lines = [
            *self._lowest_lane(skip),
            *self._slot_of_queue(own_map, storage),
            f"mov.u32 {index}, {attempts};",
            f"add.u32 {attempts}, {attempts}, 1;",
            f"setp.ne.u32 {stray}, {lower}, 0;",
            f"@{stray} atom.global.add.u32 {index}, [{address}+{STRAY_COUNT_OFFSET}], 1;",
            *loaded,
            f"setp.ge.u32 {full}, {index}, {cap};",
            f"@{full} bra {skip};",
            f"@{stray} add.u32 {index}, {index}, {cap};",
            f"mad.wide.u32 {address}, {index}, {storage.record_bytes}, {address};",
        ]
        return lines, RecordAddress(address, QUEUE_HEADER, 0)

    def _in_queue_without_branch(self, own_map: Map, storage: Storage) -> tuple[list[str], RecordAddress]:
        """Return these lines for grafts. Behind a branch, ptxas reads constants into ordinary and uniform registers; it
        makes a branch of ``atom.add`` itself, but not of ``atom.inc``.
        """
        address, index, lanes, lower = (
            self._addressing.address,
            *(self._b32(name) for name in ("index", "lanes", "lower")),
        )
        stray, first, attempts = self._pred("stray"), self._pred("first"), self._attempts(own_map)
        loaded, cap = self._cap(own_map)
        lines = [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower}, %lanemask_lt;",
            f"and.b32 {lanes}, {lanes}, {lower};",
            f"setp.eq.u32 {first}, {lanes}, 0;",
            f"setp.ne.and.u32 {stray}, {lower}, 0, {first};",
            *self._slot_of_queue(own_map, storage),
            f"mov.u32 {index}, {attempts};",
            f"@{first} add.u32 {attempts}, {attempts}, 1;",
            f"@{stray} atom.global.inc.u32 {index}, [{address}+{STRAY_COUNT_OFFSET}], {NO_ROOM - 1};",
            *loaded,
            f"setp.lt.and.u32 {first}, {index}, {cap}, {first};",
            f"@{stray} add.u32 {index}, {index}, {cap};",
            f"mad.wide.u32 {address}, {index}, {storage.record_bytes}, {address};",
        ]
        return lines, RecordAddress(address, QUEUE_HEADER, 0, first)

    def complete(self, own_map: Map) -> list[str]:
        """Lines after which the host can read the record just stored and its count, even if the warp never ends."""
        address, count, stray = self._addressing.address, self._b32("index"), self._pred("stray")
        return [
            *self._slot_of_queue(own_map, storage_of(self._probe, own_map)),
            f"add.u32 {count}, {self._attempts(own_map)}, 1;",
            f"@!{stray} st.global.u32 [{address}], {count};",
            f"@{stray} red.global.max.u32 [{address}], 1;",
            "membar.sys;",
        ]

    def _in_resident(self, own_map: Map) -> tuple[list[str], RecordAddress]:
        """One active lane stores: 16 bytes of each lane are four passes, even if all are to one address."""
        lines, place = self.resident_place(own_map)
        if not self._elects:
            return lines, RecordAddress(self._addressing.address, place, 0)
        lanes, lowest, first = self._b32("lanes"), self._b32("lower"), self._pred("first")
        by_mask = [
            f"neg.s32 {lowest}, {lanes};",
            f"and.b32 {lowest}, {lowest}, {lanes};",
            f"setp.eq.u32 {first}, {lowest}, {self._addressing.lane_bit};",
        ]
        chosen = [f"elect.sync {lowest}|{first}, {lanes};"] if self._has_elect else by_mask
        return [*lines, f"activemask.b32 {lanes};", *chosen], RecordAddress(self._addressing.address, place, 0, first)

    def resident_place(self, own_map: Map) -> tuple[list[str], int]:
        """Return the lines that set the address for the record of a resident map, and its offset from there."""
        if self._elects:
            return [self._addressing.resident_pointer()], resident_offset(self._probe, own_map)
        slot_bytes = resident_offset(self._probe)
        return self._addressing.pointer(self._parameter(own_map), slot_bytes, self._addressing.resident), 0

    def _of_leader(self, own_map: Map, storage: Storage, turn: RecordTurn) -> tuple[list[str], RecordAddress]:
        """Lane 0 is known beforehand, so there is no branch. All records of a block use the address of its first one,
        which ptxas computes once, and are counted with its last one. So an event takes three instructions: clock, line
        and store. Records of a block that begins with room may exceed the cap: they are where strays would be.
        """
        room, index, attempts = self._pred("room"), self._b32("index"), self._attempts(own_map)
        number, cap = index if own_map.latest else attempts, NO_ROOM if own_map.latest else storage.cap
        recorded = self._pred("recorded") if turn.counted else ""
        guard = f"@{recorded} " if recorded else ""
        lines = [
            *(self._iteration_lines(own_map, turn) if own_map.every else []),
            f"setp.lt{'.and' * turn.counted}.u32 {room}, {attempts}, {cap}{f', {recorded}' * turn.counted};",
            *([f"and.b32 {index}, {attempts}, {storage.cap - 1};"] if own_map.latest else []),
            f"add.u32 {index}, {self._place(own_map)}, {number};",
            *([f"{guard}add.u32 {attempts}, {attempts}, {turn.count};"] if turn.index == turn.count - 1 else []),
            *self._unit_address(own_map, index, storage.record_bytes),
        ]
        return lines, RecordAddress(self._addressing.address, turn.index * storage.record_bytes, 0, room)

    def _iteration_lines(self, own_map: Map, turn: RecordTurn) -> list[str]:
        """Lines after which ``recorded`` holds at the records to save of a loop; before it, no iteration has begun.

        The start of an iteration is saved in recorded iterations, and in those behind them: there the time begins in
        which nothing is saved.
        """
        iteration, number, recorded = self._iteration(own_map), self._b32("iteration"), self._pred("recorded")
        if not turn.counted:
            return [f"mov.u32 {iteration}, -1;"]
        return [
            *([f"add.u32 {iteration}, {iteration}, 1;"] if turn.begins else []),
            f"and.b32 {number}, {iteration}, {own_map.every - (2 if turn.begins else 1)};",
            f"setp.eq.u32 {recorded}, {number}, 0;",
        ]

    def _slot_of_queue(self, own_map: Map, storage: Storage) -> list[str]:
        if own_map.leader:
            address = self._addressing.address
            first = f"mov.b64 {address}, {{{', '.join(self._halves(own_map))}}};"
            at_place = self._unit_address(own_map, self._place(own_map), storage.record_bytes)
            return [*([first] if self._of_warps else at_place), f"add.s64 {address}, {address}, -{QUEUE_HEADER};"]
        loaded, stride = self._stride(own_map, storage, 2 * storage.record_bytes, QUEUE_HEADER)
        address, wide = self._addressing.address, self._names.temporary("wide", "b64")
        return [
            f"ld.param.u64 {wide}, [{self._parameter(own_map)}];",
            *loaded,
            f"mad.wide.u32 {address}, {self._place(own_map)}, {stride}, {wide};",
        ]

    def _count_address(self, own_map: Map, unit: int) -> list[str]:
        """The address of the lane's count: counts lie side by side, so that a warp writes whole sectors.

        On an H200 copies that recorded all their accesses took 2.6 times as long so, and 4.4 times with a count every
        16 bytes.
        """
        place, lane = self._place(own_map), self._b32("lane")
        address = self._addressing.address
        return [
            *self._unit_address(own_map, place, unit),
            f"and.b32 {lane}, {place}, {WARP_SIZE - 1};",
            f"mad.wide.s32 {address}, {lane}, {COUNT_BYTES - unit}, {address};",
        ]

    def _unit_address(self, own_map: Map, index: str, unit: int) -> list[str]:
        """Return the lines for the address of a unit by its index in the map."""
        wide = self._names.temporary("wide", "b64")
        return [
            f"ld.param.u64 {wide}, [{self._parameter(own_map)}];",
            f"mad.wide.u32 {self._addressing.address}, {index}, {unit}, {wide};",
        ]

    def _lowest_lane(self, skip: str) -> list[str]:
        """Return the lines that skip all but the lowest active lane. Lane 0 may have left, or not take part."""
        lanes, lower, follows = self._b32("lanes"), self._b32("lower"), self._pred("follows")
        return [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower}, %lanemask_lt;",
            f"and.b32 {lanes}, {lanes}, {lower};",
            f"setp.ne.u32 {follows}, {lanes}, 0;",
            f"@{follows} bra {skip};",
        ]

    def _cap(self, own_map: Map) -> tuple[list[str], str]:
        """Return the lines that load the cap, and the cap: a number or a register."""
        if own_map.cap is not None:
            return [], str(own_map.cap)
        cap = self._b32("cap")
        return [f"ld.param.u32 {cap}, [{self._names.parameter('cap', own_map.name)}];"], cap

    def _stride(self, own_map: Map, storage: Storage, slot_bytes: int, header: int) -> tuple[list[str], str]:
        """Return the lines and the register, or the number, of ``header + cap × slot_bytes``."""
        if storage.cap:
            return [], str(header + storage.cap * slot_bytes)
        loaded, cap = self._cap(own_map)
        stride = self._b32("stride")
        return [*loaded, f"mad.lo.u32 {stride}, {cap}, {slot_bytes}, {header};"], stride

    def _parameter(self, own_map: Map) -> str:
        return self._names.parameter("map", own_map.name)

    def _place(self, own_map: Map) -> str:
        """Return the register of the index of the lane's unit in a row of counts, or, for a queue, of the warp's
        number.
        """
        return self._b32(f"place_{own_map.name}")

    def _halves(self, own_map: Map) -> list[str]:
        """Return the registers of the address of a warp's first record."""
        return [self._b32(f"{half}_{own_map.name}") for half in ("low", "high")]

    def _attempts(self, own_map: Map) -> str:
        return self._b32(f"attempts_{own_map.name}")

    def _iteration(self, own_map: Map) -> str:
        """Return the register of the iteration of the innermost loop, from 0; -1 outside."""
        return self._b32(f"iteration_of_{own_map.name}")

    def _b32(self, name: str) -> str:
        return self._names.temporary(name, "b32")

    def _pred(self, name: str) -> str:
        return self._names.temporary(name, "pred")

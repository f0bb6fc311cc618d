"""Store records (``SAVE``) of one probe in one kernel: what is set at the entry, found at each record, stored at exits.

Each map has code by its layout: of one record per slot here, of several in ``record_layouts.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.record_layouts import (
    BranchlessQueueRecords,
    CountedRecords,
    EvenLanes,
    LeaderRecords,
    MapRecords,
    QueueRecords,
    RecordAddress,
    RowRecords,
)
from tui_probe.engine.snippet import saves_uniform_values
from tui_probe.probe_model.probe import Level
from tui_probe.probe_model.storage import MARK_BYTES, Layout, resident_offset, storage_of

if TYPE_CHECKING:
    from tui_probe.engine.addressing import Addressing
    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.engine.record_layouts import RecordPosition
    from tui_probe.probe_model.probe import Map, Probe

NO_ROOM_OF_WARPS: Final = 0x40000000
"""Attempts of a warp that never saves, where the code of a record counts them."""


class SlotRecords(MapRecords):
    """One record of each thread or warp, in its slot, which may have a mark that it was saved."""

    def __init__(
        self,
        probe: Probe,
        own_map: Map,
        names: UnusedNames,
        addressing: Addressing,
        *,
        tail_in_use: bool,
        is_warp_uniform: bool,
    ) -> None:
        """Describe the slots. ``tail_in_use``: memory behind the mark of a slot is in use. ``is_warp_uniform``: values
        of this map decide, not those of all maps, whether any lane may save them.
        """
        super().__init__(probe, own_map, names, addressing)
        self._tail_in_use, self._is_warp_uniform = tail_in_use, is_warp_uniform

    def locate(self, skip: str, _position: RecordPosition) -> tuple[list[str], RecordAddress]:
        by_warp, is_marked = self._map.level is Level.WARP, self._storage.layout is Layout.MARKED
        is_uniform = saves_uniform_values(self._probe, self._map.name if self._is_warp_uniform else "")
        lines = self._skip_higher_lanes(skip) if by_warp and not is_uniform else []
        if by_warp and is_marked:
            lines += self._addressing.marked_slot(self._parameter, self._storage.slot_bytes)
        else:
            lines += self._addressing.slot(self._map.level)
            lines += self._addressing.pointer(self._parameter, self._storage.slot_bytes)
        if is_marked:  # before the values are there, while registers are free
            lines += self._mark()
        return lines, RecordAddress(self._addressing.address, 0, 0)

    def _mark(self) -> list[str]:
        """Return the lines for the mark and all that is behind it in the slot: a sector that is written whole need not
        be read before.

        On an H200 a kernel whose time is that of memory took 1.09 times as long without that, and 1.05 times with it.
        """
        mark_address = f"{self._addressing.address}+{self._storage.record_bytes}"
        units = self._storage.unit // MARK_BYTES
        if self._tail_in_use or units == 1:
            return [f"st.global.u32 [{mark_address}], 1;"]
        zero = self._b32("zero")
        values = ", ".join(["1", *[zero] * (units - 1)])
        return [f"mov.u32 {zero}, 0;", f"st.global.v{units}.u32 [{mark_address}], {{{values}}};"]


class ResidentRecords(MapRecords):
    """One record of each place for a warp on an SM, which the host reads while the kernel runs."""

    def __init__(
        self, probe: Probe, own_map: Map, names: UnusedNames, addressing: Addressing, *, elects: bool, has_elect: bool
    ) -> None:
        """Describe who saves. ``elects``: one lane does, chosen by ``elect.sync`` where the GPU ``has_elect``; else all
        do, so that the code has no predicate.
        """
        super().__init__(probe, own_map, names, addressing)
        self._elects, self._has_elect = elects, has_elect

    def begin(self) -> list[str]:
        """Return lines for the entry that find the slot of all resident maps; this is the first of these maps.

        They keep its number, or the address, which costs a register more and each record two instructions less.
        """
        if not self._elects:
            return self._addressing.resident_slot()
        return [
            *self._addressing.resident_address(self._parameter, resident_offset(self._probe)),
            *([] if self._has_elect else [f"mov.u32 {self._addressing.lane_bit}, %lanemask_eq;"]),
        ]

    def live_registers(self) -> list[str]:
        """Return the registers that ``begin`` fills, 32 bits each."""
        if not self._elects:
            return [self._addressing.resident_register]
        lane = [] if self._has_elect else [self._addressing.lane_bit]
        return [*self._addressing.resident_halves, *lane]

    def find_slot(self) -> tuple[list[str], int]:
        """Return the lines that set the address for the record, and its offset from there."""
        if self._elects:
            return [self._addressing.resident_pointer()], resident_offset(self._probe, self._map)
        slot_bytes = resident_offset(self._probe)
        return self._addressing.pointer(self._parameter, slot_bytes, self._addressing.resident_register), 0

    def locate(self, _skip: str, _position: RecordPosition) -> tuple[list[str], RecordAddress]:
        """Return the place for one active lane: 16 bytes of each lane are four wavefronts, even if
        all are to one address.
        """
        lines, offset = self.find_slot()
        if not self._elects:
            return lines, RecordAddress(self._addressing.address, offset, 0)
        lanes, lowest_bit, is_chosen = self._b32("lanes"), self._b32("lower"), self._predicate("first")
        mask_lines = [
            f"neg.s32 {lowest_bit}, {lanes};",
            f"and.b32 {lowest_bit}, {lowest_bit}, {lanes};",
            f"setp.eq.u32 {is_chosen}, {lowest_bit}, {self._addressing.lane_bit};",
        ]
        choice_lines = [f"elect.sync {lowest_bit}|{is_chosen}, {lanes};"] if self._has_elect else mask_lines
        return [*lines, f"activemask.b32 {lanes};", *choice_lines], RecordAddress(
            self._addressing.address, offset, 0, is_chosen
        )


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
        is_warp_uniform: bool = False,
    ) -> None:
        """Select the code of each map. ``tail_in_use``: memory behind the mark of a slot is in use.

        ``elects``: one lane saves resident records, chosen by ``elect.sync`` where the GPU ``has_elect``; else all do,
        so that the code has no predicate. ``is_warp_uniform``: live registers are the same in all lanes of a warp: the
        address of its first record, and the number of records.
        """
        self._probe, self._names, self._addressing = probe, names, addressing
        self._tail_in_use, self._is_warp_uniform = tail_in_use, is_warp_uniform
        self._elects, self._has_elect = elects, has_elect
        self._records = {own_map.name: self._records_of(own_map) for own_map in probe.maps}

    def _records_of(self, own_map: Map) -> MapRecords:
        """Return the code for a map, by its layout."""
        context = self._probe, own_map, self._names, self._addressing
        layout = storage_of(self._probe, own_map).layout
        if layout is Layout.ROWS:
            return RowRecords(*context)
        if layout is Layout.QUEUE:
            if own_map.leader:
                return LeaderRecords(*context, is_warp_uniform=self._is_warp_uniform)
            return QueueRecords(*context) if self._elects or own_map.host else BranchlessQueueRecords(*context)
        if layout is Layout.RESIDENT:
            return ResidentRecords(*context, elects=self._elects, has_elect=self._has_elect)
        return SlotRecords(*context, tail_in_use=self._tail_in_use, is_warp_uniform=self._is_warp_uniform)

    def begin(self) -> list[str]:
        """Return lines for the entry that set the registers of resident maps, and of maps with several records."""
        resident_records = self._resident_records()
        lines = resident_records.begin() if resident_records else []
        counted_records = self._counted_records()
        if not counted_records:
            return lines
        warp, lane = (self._names.temporary(name, "b32") for name in ("warp", "lane"))
        lines += self._addressing.warp_number(warp, lane)
        for own_map, records in counted_records:
            lines.append(f"mov.u32 {records.attempts}, 0;")
            lines += [f"mov.u32 {records.iteration}, -1;"] if own_map.every else []
            lines += records.begin(warp, lane)
        return lines

    def leader_attempts(self) -> list[str]:
        """Return the registers that count attempts of lane 0 only."""
        return [records.attempts for own_map, records in self._counted_records() if own_map.leader]

    def live_registers(self, own_map: Map | None = None) -> list[str]:
        """Return the registers that ``begin`` fills for a map, or for all, 32 bits each; none for most maps."""
        counted_records = [
            (candidate, records) for candidate, records in self._counted_records() if own_map in (None, candidate)
        ]
        places = [records.place_registers for _, records in counted_records]
        names = [
            name
            for (_, records), place in zip(counted_records, places, strict=True)
            for name in (*place, records.attempts)
        ]
        names += [records.iteration for counted_map, records in counted_records if counted_map.every]
        resident_records = self._resident_records() if own_map is None or own_map.resident else None
        return [*(resident_records.live_registers() if resident_records else []), *names]

    def end(self) -> list[str]:
        """Return lines for an exit, which store the number of records that were to be saved."""
        return [line for _, records in self._counted_records() for line in records.end()]

    def locate(self, own_map: Map, skip: str, position: RecordPosition) -> tuple[list[str], RecordAddress]:
        """Return the lines that find the place of the next record, and the place; see ``MapRecords``."""
        return self._records[own_map.name].locate(skip, position)

    def even_lanes(self, own_map: Map) -> EvenLanes:
        """Return the code for records of a map of rows, where two lanes may save for their warp."""
        return EvenLanes(own_map, self._names)

    def complete(self, own_map: Map) -> list[str]:
        """Return lines after which the host can read the record just stored in a queue, even if the warp never ends."""
        records = self._records[own_map.name]
        assert isinstance(records, QueueRecords)
        return records.complete()

    def find_resident_record(self, own_map: Map) -> tuple[list[str], int]:
        """Return the lines that set the address for the record of a resident map, and its offset from there."""
        records = self._records[own_map.name]
        assert isinstance(records, ResidentRecords)
        return records.find_slot()

    def _counted_records(self) -> list[tuple[Map, CountedRecords]]:
        """Return the maps of several records per slot, with their code."""
        pairs = ((own_map, self._records[own_map.name]) for own_map in self._probe.maps)
        return [(own_map, records) for own_map, records in pairs if isinstance(records, CountedRecords)]

    def _resident_records(self) -> ResidentRecords | None:
        """Return the code of the first resident map, whose slot holds those of the others; None without any."""
        resident_records = (records for records in self._records.values() if isinstance(records, ResidentRecords))
        return next(resident_records, None)

"""The hook's work for a probed kernel, in NumPy: memory for its maps, and their records as in a result file."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.engine.reduced_maps import REDUCED, reduced_bytes, reduced_size
from tests.trace.make import result_bytes
from tui_probe.probe_model.probe import Level
from tui_probe.probe_model.storage import (
    FOLDED_SLOTS,
    RESIDENT_SMS,
    SLOTS_OF_SM,
    Layout,
    MapSlot,
    Storage,
    map_slots,
    resident_offset,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tui_probe.probe_model.probe import Probe, Reduction

Extent = tuple[int, ...]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

UNKNOWN = 0xFFFFFFFF
COUNTS = 3
SITES = 4
LAUNCH = 7
"""The number of the launch in resident records."""
KINDS = {Layout.PLAIN: 0, Layout.MARKED: 1, Layout.ROWS: 2, Layout.QUEUE: 2}


@dataclass
class FileMap:
    """A map as in a result file: ``slots`` of shape (blocks, slots per block, bytes), and what is said of it."""

    divisor: int
    slots: Bytes
    kind: int
    record: int
    marks: bytes = b""


class DeviceMaps:
    """The maps of one launch. ``caps`` are those of the dynamic maps by name, ``sites`` the lines of maps of sites.

    ``sample`` are the blocks that measure, None for all. Maps are reduced unless all ``detail`` is kept.
    """

    def __init__(
        self,
        probe: Probe,
        grid: Extent,
        block: Extent,
        caps: Mapping[str, int] | None = None,
        sites: Mapping[str, Sequence[int]] | None = None,
        sample: range | None = None,
        *,
        detail: bool = True,
    ) -> None:
        self.detail = detail
        self.launched, self.block, self.sample = grid, block, sample
        last = 2**64 - 1
        table = np.array([1, 0, 0, 0, last, last, last], np.uint64)
        self._allocations = [table.view(np.uint8)] if probe.reads_allocations else []
        self.grid = grid if sample is None else (len(sample),)
        self.blocks, self.threads = int(np.prod(self.grid)), int(np.prod(block))
        self.warps = -(-self.threads // 32)
        caps = caps or {}
        self._maps: list[tuple[MapSlot, Storage, Bytes]] = []
        self._resident = np.zeros((RESIDENT_SMS * SLOTS_OF_SM, resident_offset(probe)), np.uint8)
        self._resident_offsets = {own.name: resident_offset(probe, own) for own in probe.maps}
        self._caps = []
        for slot in map_slots(probe, sites or {}):
            if slot.storage is None:
                continue
            storage = slot.storage
            if storage.layout is Layout.SITES:
                self._maps.append((slot, storage, np.zeros(storage.copies * storage.slot_bytes, np.uint8)))
                continue
            if storage.cap == 0:
                storage = replace(storage, cap=caps[slot.name])
                self._caps.append(np.uint64(caps[slot.name]))
            if storage.layout is Layout.FOLDED:
                self._maps.append((slot, storage, np.zeros(FOLDED_SLOTS * storage.slot_bytes, np.uint8)))
                continue
            if storage.layout is Layout.RESIDENT:  # kernels reach all of them by the address of the first
                is_first = not self._resident_offsets[slot.name]
                self._maps.append((slot, storage, self._resident.ravel() if is_first else np.zeros(16, np.uint8)))
                continue
            by_warp = slot.level is Level.WARP or storage.layout is Layout.ROWS
            groups = self.blocks * (self.warps if by_warp else self.threads)
            self._maps.append((slot, storage, np.zeros(groups * storage.slot_bytes, np.uint8)))

    @property
    def arguments(self) -> list[Any]:
        """The arguments behind the kernel's own."""
        launch = [np.uint64(LAUNCH)] if any(storage.layout is Layout.RESIDENT for _, storage, _ in self._maps) else []
        return [*(memory for _, _, memory in self._maps), *self._caps, *launch, *self._allocations, *self._sample()]

    def _sample(self) -> list[Any]:
        if self.sample is None:
            return []
        step = self.sample.step
        values = self.sample.start | len(self.sample) << 32, step | -(-(1 << 31) // step) << 32
        return [np.uint64(value) for value in values]

    def of_file(self) -> list[FileMap]:
        """The maps in the order of the file; counts follow theirs."""
        maps_found = []
        for slot, storage, memory in self._maps:
            if storage.layout is Layout.FOLDED:
                maps_found.append(self._folded(slot, memory))
                continue
            convert = {Layout.ROWS: self._rows, Layout.QUEUE: self._queue, Layout.MARKED: self._marked}
            convert |= {Layout.SITES: self._sites, Layout.RESIDENT: self._of_residents}
            made = convert.get(storage.layout, self._plain)(slot, storage, memory)
            maps_found += made if self.detail or slot.reduction is None else [self._reduced(slot.reduction, made[0])]
        return maps_found

    def _folded(self, slot: MapSlot, memory: Bytes) -> FileMap:
        """The sum of all slots, in a file whose slots have no bytes."""
        assert slot.reduction is not None
        slots = memory.reshape(1, FOLDED_SLOTS, -1)
        left = reduced_bytes(slot.reduction, slots, np.ones(slots.shape[:2], bool))
        nothing = np.zeros((self.blocks, self.warps, 0), np.uint8)
        return FileMap(_divisor(slot), nothing, REDUCED, slot.reduction.record_bytes, left)

    def _reduced(self, reduction: Reduction, whole: FileMap) -> FileMap:
        """The reduced form of a map, unless that takes as much room as all of it."""
        if reduced_size(reduction, self.blocks, self.threads) >= whole.slots.size:
            return whole
        shape = whole.slots.shape[:2]
        marks = np.unpackbits(np.frombuffer(whole.marks, np.uint8), bitorder="little")[: shape[0] * shape[1]]
        saved = marks.astype(bool).reshape(shape) if whole.kind == KINDS[Layout.MARKED] else np.ones(shape, bool)
        left = reduced_bytes(reduction, whole.slots, saved)
        return FileMap(whole.divisor, np.zeros((*shape, 0), np.uint8), REDUCED, reduction.record_bytes, left)

    def save(self, path: Path, shared: int = 0) -> None:
        """Write a result file."""
        maps = self.of_file()
        data = [(file_map.divisor, file_map.slots) for file_map in maps]
        about = [(file_map.kind, file_map.record, file_map.marks) for file_map in maps]
        content = result_bytes(_three(self.grid), _three(self.block), data, shared=shared, about=about)
        if self.sample is not None:
            numbers = *_three(self.launched), self.sample.start, self.sample.step, len(self.sample)
            content += bytes(-len(content) % 8) + b"sampled\1" + struct.pack("<6I", *numbers)
        path.write_bytes(content)

    def _slots(self, level: Level) -> int:
        return self.warps if level is Level.WARP else self.threads

    def _plain(self, slot: MapSlot, storage: Storage, memory: Bytes) -> list[FileMap]:
        slots = memory.reshape(self.blocks, self._slots(slot.level), -1)
        return [FileMap(_divisor(slot), slots, 0, storage.record_bytes)]

    def _marked(self, slot: MapSlot, storage: Storage, memory: Bytes) -> list[FileMap]:
        slots = memory.reshape(self.blocks, self._slots(slot.level), storage.slot_bytes)
        record = storage.record_bytes
        marks = np.ascontiguousarray(slots[:, :, record : record + 4]).view("<u4").ravel() != 0
        bits = np.packbits(marks, bitorder="little").tobytes()
        return [FileMap(_divisor(slot), np.ascontiguousarray(slots[:, :, :record]), 1, record, bits)]

    def _of_residents(self, slot: MapSlot, storage: Storage, memory: Bytes) -> list[FileMap]:
        """The records of the warps that had a slot last, no matter whether they have ended."""
        del memory
        warps = self._resident[:, 16:32].copy().view([("launch", "<u8"), ("block", "<u4"), ("warp", "<u4")]).ravel()
        places = np.flatnonzero(warps["launch"] == LAUNCH)
        numbers = warps["block"][places] * self.warps + warps["warp"][places]
        slots = np.zeros((self.blocks * self.warps, storage.record_bytes), np.uint8)
        begin = self._resident_offsets[slot.name]
        slots[numbers] = self._resident[places, begin : begin + storage.record_bytes]
        marks = np.isin(np.arange(len(slots)), numbers)
        shape = self.blocks, self.warps, storage.record_bytes
        bits = np.packbits(marks, bitorder="little").tobytes()
        return [FileMap(_divisor(slot), slots.reshape(shape), 1, storage.record_bytes, bits)]

    def _sites(self, slot: MapSlot, storage: Storage, memory: Bytes) -> list[FileMap]:
        """Slots of no bytes, and the sum of the copies in place of marks."""
        copies = memory.view("<u8").reshape(storage.copies, -1)
        sums = copies.sum(axis=0)[: storage.cap * storage.record_bytes // 8]
        nothing = np.zeros((self.blocks, self.warps, 0), np.uint8)
        return [FileMap(_divisor(slot), nothing, SITES, storage.record_bytes, sums.tobytes())]

    def _counted(self, slot: MapSlot, storage: Storage, slots: Bytes, counts: Any) -> list[FileMap]:
        counted = counts.astype("<u4")[:, :, np.newaxis].view(np.uint8)
        return [FileMap(_divisor(slot), slots, 2, storage.record_bytes), FileMap(_divisor(slot), counted, COUNTS, 4)]

    def _rows(self, slot: MapSlot, storage: Storage, memory: Bytes) -> list[FileMap]:
        unit, cap, record = storage.unit, storage.cap, storage.record_bytes
        rows = memory.reshape(self.blocks, self.warps, 1 + cap * storage.columns, 32, unit)
        heads = np.ascontiguousarray(rows[:, :, 0]).reshape(self.blocks, self.warps, -1)[:, :, : 32 * 4]
        counts = np.ascontiguousarray(heads).view("<u4").reshape(self.blocks, -1)[:, : self.threads]
        slots = rows[:, :, 1:].transpose(0, 1, 3, 2, 4).reshape(self.blocks, self.warps * 32, cap, record)
        if storage.even:
            slots = _expanded(slots.reshape(self.blocks, self.warps, 32, cap, record)).reshape(slots.shape)
        slots = slots[:, : self.threads].copy()
        saved = np.where(counts == 0, cap, counts.astype(np.int64) - 1)
        slots[np.arange(cap) >= saved[:, :, np.newaxis]] = 0
        attempts = np.where(counts == 0, UNKNOWN, counts.astype(np.int64) - 1)
        return self._counted(slot, storage, slots.reshape(self.blocks, self.threads, -1), attempts)

    def _queue(self, slot: MapSlot, storage: Storage, memory: Bytes) -> list[FileMap]:
        cap, record = storage.cap, storage.record_bytes
        queues = memory.reshape(self.blocks * self.warps, storage.slot_bytes)
        slots = np.zeros((len(queues), cap, record), np.uint8)
        attempts = np.zeros(len(queues), np.int64)
        for number, queue in enumerate(queues):
            count, strays = (int(value) for value in queue[:8].view("<u4"))
            records = queue[16:].reshape(2, cap, record)
            saved = min(count - 1, cap) if count else cap
            more = min(strays, cap - saved)
            slots[number, :saved] = records[0, :saved]
            slots[number, saved : saved + more] = records[1, :more]
            attempts[number] = count - 1 + strays if count else UNKNOWN
        shape = (self.blocks, self.warps)
        return self._counted(slot, storage, slots.reshape(*shape, -1), attempts.reshape(shape))


def _expanded(slots: Bytes) -> Bytes:
    """Records of all lanes where lanes 0 and 1 have saved for their warp: of u64, u32, u32."""
    records = np.ascontiguousarray(slots).view([("first", "<u8"), ("middle", "<u4"), ("last", "<u4")])[..., 0]
    alike = (records["last"][:, :, :1] >> 31).astype(bool)
    first, second = records["first"][:, :, :1], records["first"][:, :, 1:2]
    lanes = np.arange(32, dtype=np.uint64)[:, np.newaxis]
    made = np.where(alike, records[:, :, :1], records)
    made["first"] = np.where(alike, first + lanes * (second - first), records["first"])
    made["last"] &= 0x7FFFFFFF
    return made[..., np.newaxis].view(np.uint8)


def _divisor(slot: MapSlot) -> int:
    return 32 if slot.level is Level.WARP else 1


def _three(sides: Extent) -> tuple[int, int, int]:
    x, y, z = (*sides, 1, 1)[:3]
    return x, y, z

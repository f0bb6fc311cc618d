"""Layout of a map's records in device memory; the hook converts it to the layout of result files.

Plain: slot after slot, as in the file; what ``ADD`` adds to.
Folded: the same, but only the sum is in the file. ``FOLDED_SLOTS`` of them serve all warps of a launch::

    slot = SM mod ``FOLDED_SMS`` x ``SLOTS_OF_SM`` + clock mod ``SLOTS_OF_SM``

    So they stay in the cache: on an H100 a copy of 64 MB has 524 288 warps, whose own slots would be 25 MB.
Resident: a record for each warp that the GPU holds at a time, in one table for all launches of a context, which the
host reads while kernels run::

    slot = SM mod ``RESIDENT_SMS`` x ``SLOTS_OF_SM`` + number of the warp on its SM mod ``SLOTS_OF_SM``

    The records of a slot lie side by side, each from a multiple of ``RESIDENT_ALIGNMENT`` bytes on, so that one address
    leads to all of them.

    The table is in device memory, where stores stay in the L2 cache. Stores over PCIe would be too many: a loop of 1 us
    in 8448 resident warps of an H100 makes 8 G of them per second.
Marked: the one record of a slot, and behind it a u32 that is 1 once it was written.
Rows: of a thread's records. A warp's lanes lie side by side, so that a store of the warp is one piece of memory::

    warp = row of counts, then one row per column of a record       row = 32 lanes × unit bytes

    A record is cut into columns of ``unit`` bytes, as many as one store writes. The first row begins with a u32 for
    each lane, side by side: 1 + its attempts to save, written at its exit; 0 says that it reached none.

    Of an ``even`` map, a record of u64, u32, u32: where the first field of a whole warp rises evenly from lane to lane,
    and all its lanes have come to the same record, lanes 0 and 1 save theirs, with a mark, and the others nothing. That
    is a sixteenth of the memory traffic. The hook writes the records of all lanes to the result file.
Queue: of a warp's records, which lanes save one after another::

    slot = u32 count, u32 strays, 8 bytes unused, ``cap`` records of lane 0, ``cap`` records of strays

    Where lane 0 takes part it saves, at an index that only it counts. Lanes that have come without it, since it has
    left or gone another way, are strays: they take their index from memory, one after another, and write to a place of
    their own. So no two write the same record, and none needs to ask memory while the warp holds together. ``count``
    is 1 + the attempts of lane 0, written at its exit; 0 says that it reached none.
Sites: one record per instruction, to which all warps add. There are up to ``SITE_COPIES`` of each::

    copy = a record for each site, then nothing up to a multiple of ``SITE_PITCH`` bytes

    A warp adds to the copy that its SM's number names, so that SMs seldom wait for each other; the hook adds them up,
    and keeps the largest value of one field: the longest wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.probe_model.probe import LONGEST_HELPER, Level, Save
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.probe_model.probe import LeastShare, Map, Probe, Reduction

COUNT_BYTES: Final = 4
"""Bytes of a slot in the map of counts that a map of several records per slot has."""
MARK_BYTES: Final = 4
"""Bytes of the mark behind a record that says that it was written."""
QUEUE_HEADER: Final = 16
"""Bytes in front of the records of a queue: the counts, and as many more as let a store of 16 bytes be aligned."""
STRAY_COUNT_OFFSET: Final = 4
"""Offset of the count of strays in the header of a queue."""
EVEN_MARK: Final = 0x80000000
"""Set in the last word of lanes 0 and 1 where they have saved for their warp."""
SITE_COPIES: Final = 128
"""A power of two: hardly two SMs share a copy. Additions to one place wait for each other: on an H200, copies of arrays
that added seven numbers per warp took 1.8 times as long with 64 places, and 1.5 times with 256.
"""
_MAX_SITE_BYTES: Final = 1 << 20
"""Limit for all copies; beyond it there are fewer: with that many sites, SMs seldom use the same one."""
_MIN_SITE_COPIES: Final = 4
SITE_PITCH: Final = 256
"""Bytes of which the size of a copy is a multiple, so that no two copies share a cache line."""
FOLDED_SMS: Final = 64
SLOTS_OF_SM: Final = 64
"""Slots that the warps of an SM use: as many as an SM holds warps."""
FOLDED_SLOTS: Final = FOLDED_SMS * SLOTS_OF_SM
RESIDENT_SMS: Final = 256
"""More than a GPU has, so that no two warps share a slot; numbers of SMs may have gaps."""

RESIDENT_ALIGNMENT: Final = 16
"""Bytes of the largest store."""

LAUNCH_PARAMETER: Final = ("launch", "number")
"""The parameter of a kernel with resident records that identifies the launch in them."""
ALLOCATIONS_PARAMETER: Final = ("allocations", "table")
"""The parameter with the address of the table of allocations: ``hook/src/memory/allocation_table.h``."""


class Layout(Enum):
    """The layouts by their names in ``kernel.info``."""

    PLAIN = "plain"
    FOLDED = "folded"
    RESIDENT = "resident"
    MARKED = "marked"
    ROWS = "rows"
    QUEUE = "queue"
    SITES = "sites"


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage of a map's records on the device. ``cap`` is 0 if only the launch knows it; of sites, their number."""

    layout: Layout
    record_bytes: int
    cap: int
    even: bool = False
    """True if rows mark in the highest bit of lane 0's last word that lanes 0 and 1 have saved for the warp."""
    max_offset: int | None = None
    """Offset in a record of sites of the field whose largest value is kept, not the sum."""

    @property
    def unit(self) -> int:
        """Bytes that one store may write: the largest power of two up to 16 that divides a record."""
        return next(unit for unit in (16, 8, 4) if self.record_bytes % unit == 0)

    @property
    def columns(self) -> int:
        """Pieces of a record that each are a row of their own, in rows."""
        return self.record_bytes // self.unit

    @property
    def copies(self) -> int:
        """Copies of the records of sites, a power of two."""
        copies = SITE_COPIES
        while copies > _MIN_SITE_COPIES and copies * self.slot_bytes > _MAX_SITE_BYTES:
            copies //= 2
        return copies

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot; in rows, of a warp; of sites, of a copy. With an unknown ``cap``, those without records."""
        if self.layout is Layout.MARKED:
            return self.record_bytes + max(self.unit, MARK_BYTES)
        if self.layout is Layout.ROWS:
            return WARP_SIZE * (self.unit + self.cap * self.record_bytes)
        if self.layout is Layout.SITES:
            return -(-max(self.cap, 1) * self.record_bytes // SITE_PITCH) * SITE_PITCH
        if self.layout is Layout.QUEUE:
            return QUEUE_HEADER + 2 * self.cap * self.record_bytes
        return self.record_bytes


class MapSlot(NamedTuple):
    """A map as ``kernel.info`` lists it: who has a slot, and the bytes of a slot in the result file.

    ``purpose`` is ``map``, or ``count`` for the number of attempts to save in each slot of the map of that name, which
    has no memory of its own on the device: ``storage`` is None. A map of sites is listed as one whose warps have slots
    of 0 bytes, since its records belong to none of them; ``lines`` are those of its sites in ``pruned.ptx``.
    """

    purpose: str
    name: str
    level: Level
    slot_bytes: int
    storage: Storage | None
    lines: tuple[int, ...] = ()
    reduction: Reduction | None = None
    """Part of it that is in the result file, if not all."""
    least: LeastShare | None = None


def map_slots(probe: Probe, sites: Mapping[str, Sequence[int]]) -> list[MapSlot]:
    """The maps of a result file in order; counts follow the map that they belong to.

    ``sites`` holds the lines of the sites of each map that keeps them.
    """
    slots = []
    for own_map in probe.maps:
        if own_map.level is Level.SITE:
            lines = tuple(sites[own_map.name])
            storage = Storage(Layout.SITES, own_map.record_bytes, len(lines), max_offset=_max_offset(probe, own_map))
            slots.append(MapSlot("map", own_map.name, Level.WARP, 0, storage, lines, least=own_map.least))
            continue
        storage = storage_of(probe, own_map)
        slots.append(
            MapSlot("map", own_map.name, own_map.level, own_map.slot_bytes, storage, reduction=own_map.reduction)
        )
        if own_map.cap != 1:
            slots.append(MapSlot("count", own_map.name, own_map.level, COUNT_BYTES, None))
    return slots


def probe_parameters(probe: Probe) -> list[tuple[str, str]]:
    """Parameters added to a probed kernel, (purpose, name of the map): addresses, capacities, the launch's number, the
    table of allocations.
    """
    addresses = [("map", own_map.name) for own_map in probe.maps]
    caps = [("cap", own_map.name) for own_map in probe.maps if own_map.cap is None]
    launch = [LAUNCH_PARAMETER] if probe.is_resident else []
    return addresses + caps + launch + ([ALLOCATIONS_PARAMETER] if probe.reads_allocations else [])


def storage_of(probe: Probe, own_map: Map) -> Storage:
    """Return the storage of a map of a probe."""
    if own_map.resident:
        layout = Layout.RESIDENT
    elif own_map.cap == 1:
        summed = Layout.FOLDED if own_map.folded else Layout.PLAIN
        layout = summed if own_map.name in _summed_maps(probe) else Layout.MARKED
    else:
        layout = Layout.ROWS if own_map.level is Level.THREAD else Layout.QUEUE
    return Storage(layout, own_map.record_bytes, own_map.cap or 0, own_map.even)


def resident_offset(probe: Probe, own_map: Map | None = None) -> int:
    """Return the bytes from the start of a resident slot to a map's record; by default to the slot's end."""
    records = takewhile(
        lambda candidate: candidate is not own_map, (candidate for candidate in probe.maps if candidate.resident)
    )
    return sum(-(-record.record_bytes // RESIDENT_ALIGNMENT) * RESIDENT_ALIGNMENT for record in records)


def fold_sums(probe: Probe) -> Probe:
    """Return the probe with folded maps where only the sum over a launch is saved of what warps add up."""
    summed = _summed_maps(probe)
    maps = tuple(replace(own_map, folded=own_map.name in summed and _is_launch_sum(own_map)) for own_map in probe.maps)
    return replace(probe, maps=maps)


def _max_offset(probe: Probe, own_map: Map) -> int | None:
    """Return the offset of the field that gets the longest wait of each site; None for none."""
    saves = (save for save in _saves(probe) if save.map == own_map.name and LONGEST_HELPER in save.values)
    return next((own_map.fields[save.values.index(LONGEST_HELPER)].offset for save in saves), None)


def _is_launch_sum(own_map: Map) -> bool:
    reduction = own_map.reduction
    if own_map.level is not Level.WARP or own_map.cap != 1 or reduction is None or reduction.group != "launch":
        return False
    return all(field.operation == "sum" for field in reduction.fields)


def _summed_maps(probe: Probe) -> set[str]:
    """The maps with an ADD."""
    return {save.map for save in _saves(probe) if save.adds}


def _saves(probe: Probe) -> Iterator[Save]:
    snippets = (snippet for point in probe.points for snippet in (point.before, point.after) if snippet)
    return (save for snippet in snippets for save in snippet.statements if isinstance(save, Save))

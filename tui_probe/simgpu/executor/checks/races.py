"""Races: accesses of two threads to the same bytes, one of them a store, in no order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.simgpu.executor.checks.access_clock import BULK, MAX_THREADS, SAME_THREAD_BITS, STRONG, TIME_BITS
from tui_probe.simgpu.executor.checks.accesses import ATOMIC, gather, scatter
from tui_probe.simgpu.executor.checks.byte_states import sparse_bytes
from tui_probe.simgpu.executor.model import WARP_SIZE
from tui_probe.simgpu.executor.scalars import U8, U64

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.checks.access_order import BatchOrder
    from tui_probe.simgpu.executor.checks.accesses import CheckedAccess
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.scalars import Value

_STRONG: Final = np.uint64(STRONG)
_BULK_FLAG: Final = np.uint64(BULK)
_WARP_BITS: Final = np.uint64(MAX_THREADS - WARP_SIZE)
"""Bits of a stamp that differ between warps, of blocks of whole warps."""
_MAX_KEPT_BYTES: Final = 64 << 20
"""Bytes of loads without stamps that are kept: of more, the oldest are not searched for races."""


class Race(NamedTuple):
    """A race of lane ``number`` of an access with the access of ``stamp``; ``lanes`` have one."""

    number: int
    stamp: int
    lanes: int


class StampRecord:
    """Stamps of the loads from, or of the stores to, each ``granule`` of bytes of a memory.

    The last access hides those before it, which may race with an access that the last one does not race with. So there
    are three arrays: of the last access, of the first lane if several lanes executed it, and of the last access before
    by another warp. A fourth one has the last atomic with a result. ``make`` returns zeros for all granules; it may
    raise OSError.
    """

    def __init__(self, make: Callable[[], NDArray[np.uint64]], granule: int) -> None:
        self._make_zeros, self._granule = make, granule
        self._last_stamps = make()
        self._covers_all, self._covered_stamp = False, np.uint64(0)
        self.newest_stamp = self.newest_hidden = self.newest_atomic = np.uint64(0)
        """The newest stamp of all, the newest one in ``hidden`` or a newer one, and the newest one of an atomic."""

    @cached_property
    def _first_lane_stamps(self) -> NDArray[np.uint64]:
        return self._make_zeros()

    @cached_property
    def _other_warp_stamps(self) -> NDArray[np.uint64]:
        return self._make_zeros()

    @cached_property
    def _atomic_stamps(self) -> NDArray[np.uint64]:
        return self._make_zeros()

    def last_stamps(self, size: int, elements: slice | Value) -> Value:
        """Return the stamps of the last access of ``size`` bytes: shape (lanes or one, granules)."""
        return gather(self._granules_by_access(self._last_stamps, size), elements)

    def hidden_stamps(self, size: int, elements: slice | Value) -> list[Value]:
        """Return stamps of earlier accesses, like ``last_stamps``."""
        return [
            gather(self._granules_by_access(stamps, size), elements)
            for stamps in (self._first_lane_stamps, self._other_warp_stamps)
        ]

    def last_atomic_stamps(self, size: int, elements: slice | Value) -> Value:
        """Return the stamps of the last atomic with a result, like ``last_stamps``."""
        return gather(self._granules_by_access(self._atomic_stamps, size), elements)

    def covers_all(self) -> bool:
        """Return whether each granule has a stamp."""
        if not self._covers_all and self._covered_stamp != self.newest_stamp:
            self._covers_all, self._covered_stamp = bool(self._last_stamps.all()), self.newest_stamp
        return self._covers_all

    def add(self, size: int, elements: slice | Value, lane_stamps: NDArray[np.uint64], floor: np.uint64) -> None:
        """Add an access. Stamps up to ``floor`` make no difference any more."""
        is_single = isinstance(elements, slice) and elements.stop - elements.start == 1
        stamps = lane_stamps[-1:] if is_single else lane_stamps
        if self.newest_stamp > floor:
            self._keep_hidden(size, elements, stamps, floor)
        if is_single and len(lane_stamps) > 1:
            scatter(self._granules_by_access(self._first_lane_stamps, size), elements, lane_stamps[:1])
            self.newest_hidden = lane_stamps[0]
        elif not isinstance(elements, slice) and not (elements[1:] > elements[:-1]).all():
            scatter(self._granules_by_access(self._first_lane_stamps, size), elements[::-1], lane_stamps[::-1])
            self.newest_hidden = lane_stamps[0]
        scatter(self._granules_by_access(self._last_stamps, size), elements, stamps)
        self.newest_stamp = lane_stamps[-1]

    def add_atomic(self, size: int, elements: slice | Value, lane_stamps: NDArray[np.uint64]) -> None:
        """Add an atomic with a result, after ``add``."""
        is_single = isinstance(elements, slice) and elements.stop - elements.start == 1
        scatter(
            self._granules_by_access(self._atomic_stamps, size),
            elements,
            lane_stamps[-1:] if is_single else lane_stamps,
        )
        self.newest_atomic = lane_stamps[-1]

    def _keep_hidden(self, size: int, elements: slice | Value, stamps: NDArray[np.uint64], floor: np.uint64) -> None:
        """Keep the last accesses before those of ``stamps``, by other warps."""
        earlier_stamps = self.last_stamps(size, elements)
        is_hidden = (earlier_stamps > floor) & (((earlier_stamps ^ stamps[:, None]) & _WARP_BITS) != 0)
        if is_hidden.any():
            other_stamps = self._granules_by_access(self._other_warp_stamps, size)
            other_stamps[elements] = np.where(is_hidden, earlier_stamps, gather(other_stamps, elements))
            self.newest_hidden = self.newest_stamp

    def _granules_by_access(self, stamps: NDArray[np.uint64], size: int) -> Value:
        count = max(size // self._granule, 1)
        return stamps[: len(stamps) // count * count].reshape(-1, count)


class Stamps:
    """Stamps of the stores to and the loads of each ``granule`` of bytes of a memory."""

    def __init__(self, make: Callable[[], NDArray[np.uint64]], granule: int) -> None:
        self.granule = granule
        self.stores, self.loads = StampRecord(make, granule), StampRecord(make, granule)

    @classmethod
    def for_blocks(cls, size: int, granule: int) -> Stamps:
        """Make the stamps of memory that each launch has anew."""
        return cls(lambda: np.zeros(size // granule, U64), granule)

    @classmethod
    def for_device(cls, size: int, granule: int) -> Stamps:
        """Make the stamps of device memory: they take memory where kernels access it. Raises OSError."""
        return cls(lambda: np.frombuffer(sparse_bytes(size // granule * 8), U64), granule)


class RaceSearch:
    """The races of one access at ``time`` with those before it, in a memory with ``stamps``.

    Accesses until ``floor`` are ordered.
    """

    def __init__(
        self, access: CheckedAccess, elements: slice | Value, order: BatchOrder, stamps: Stamps, floor: int, time: int
    ) -> None:
        self._access, self._elements, self._order, self._stamps = access, elements, order, stamps
        threads = order.grid_threads(access.lanes)
        self._threads = threads if access.positions is None else threads[access.positions]
        self._stamp = np.uint64(time << TIME_BITS | access.kind.flag)
        self._floor = np.uint64(floor << TIME_BITS | (1 << TIME_BITS) - 1)

    @cached_property
    def _lane_stamps(self) -> NDArray[np.uint64]:
        """The stamp of this access for each lane."""
        return self._threads | self._stamp

    @property
    def kept_bytes(self) -> int:
        """Memory that is kept as long as this."""
        return 0 if isinstance(self._elements, slice) else self._elements.nbytes

    @property
    def is_pending(self) -> bool:
        """True of a copy, which barriers do not end."""
        return bool(self._access.kind.flag & BULK)

    @property
    def time(self) -> int:
        """Time of the access."""
        return int(self._stamp) >> TIME_BITS

    def find_unstored(self) -> NDArray[np.bool_]:
        """Return, per lane or for all, whether no byte has been stored; no lanes if all bytes have."""
        stores = self._stamps.stores
        if stores.covers_all() or (last_stamps := stores.last_stamps(self._access.size, self._elements)).all():
            return np.zeros(0, np.bool_)
        is_unstored: NDArray[np.bool_] = (last_stamps == 0).all(axis=1)
        return is_unstored

    def races_with_stores(self) -> list[Race]:
        """Return the race with a store before, if there is one."""
        kind = self._access.kind
        # A strong load finds the value of before or after a store, as one that polls a flag expects. So does a load
        # next to a strong store, as in front of a loop with an atomic compare-and-swap.
        scope = kind.scope if kind.is_write else kind.scope or STRONG
        return self._races_with_record(self._stamps.stores, scope, excuses_weak=bool(kind.scope) and not kind.is_write)

    def races_with_loads(self) -> list[Race]:
        """Return the race of a store with a load before, if there is one."""
        scope = self._access.kind.scope
        return self._races_with_record(self._stamps.loads, scope or STRONG, excuses_weak=bool(scope))

    def stamp_loads(self) -> None:
        """Leave the stamps of a load."""
        self._stamps.loads.add(self._access.size, self._elements, self._lane_stamps, self._floor)

    def stamp_stores(self) -> list[Race]:
        """Leave the stamps of a store. Return the race of its lanes with each other, if there is one."""
        self._stamps.stores.add(self._access.size, self._elements, self._lane_stamps, self._floor)
        if self._access.kind.name == ATOMIC and self._access.kind.is_acquire:
            self._stamps.stores.add_atomic(self._access.size, self._elements, self._lane_stamps)
        # Copies and what has the scope of the GPU race with nothing of the same instruction.
        race = None if self._access.kind.flag & BULK or self._access.kind.scope == STRONG else self._race_of_lanes()
        return [] if race is None else [race]

    def _races_with_record(self, record: StampRecord, scope: int, *, excuses_weak: bool) -> list[Race]:
        """Return the race with an access of a record, if there is one. See ``_race_with_stamps``."""
        if record.newest_stamp <= self._floor and not self._order.copies.is_used:
            return []
        size, elements = self._access.size, self._elements
        stamps = [record.last_stamps(size, elements)]
        if record.newest_hidden > self._floor:
            stamps += record.hidden_stamps(size, elements)
        races = (self._race_with_stamps(earlier_stamps, scope, excuses_weak=excuses_weak) for earlier_stamps in stamps)
        return [race for race in races if race is not None][:1]

    def _race_with_stamps(self, earlier_stamps: Value, scope: int, *, excuses_weak: bool) -> Race | None:
        """The race with the accesses that have the stamps ``earlier_stamps``: shape (lanes or one, granules).

        This access races with no strong one if the scopes of both, ``scope`` and its own, have the threads of both;
        ``excuses_weak``: with no weak one.
        """
        if not self._order.copies.is_used and earlier_stamps.max() <= self._floor:
            return None
        is_recent = (earlier_stamps > self._floor) | (
            ((earlier_stamps & _BULK_FLAG) != 0) & (earlier_stamps > self._order.first_stamp)
        )
        has_race = is_recent & (((earlier_stamps ^ self._lane_stamps[:, None]) & SAME_THREAD_BITS) != 0)
        strength = earlier_stamps & _STRONG
        if scope == STRONG:
            has_race &= strength != _STRONG
        if excuses_weak:
            has_race &= strength != 0
        rows, columns = np.nonzero(has_race)
        if not len(rows):
            return None
        stamps = np.broadcast_to(earlier_stamps, has_race.shape)[rows, columns]
        is_unordered = self._order.is_unordered(stamps, self._access.lanes, self._positions(rows))
        if scope:
            is_strong = (stamps & _STRONG) != 0
            is_unordered &= ~(
                is_strong & self._order.in_scope(stamps, self._access.lanes, self._positions(rows), scope)
            )
        if is_unordered.any() and self._stamps.stores.newest_atomic > self._floor:
            is_unordered &= ~self._precedes_atomic(stamps, rows, columns)
        if is_unordered.any():
            is_unordered &= self._changes_value(rows)
        if not is_unordered.any():
            return None
        position = int(np.argmax(is_unordered))
        return Race(int(rows[position]), int(stamps[position]), len(np.unique(rows[is_unordered])))

    def _precedes_atomic(self, stamps: Value, rows: Places, columns: Places) -> NDArray[np.bool_]:
        """Return, per stamp, whether an atomic that happens before this access has seen the strong access of the stamp.

        An atomic with a result sees all earlier atomics on its bytes. So the last block that counts itself may reset
        the counter.
        """
        atomic_stamps = self._stamps.stores.last_atomic_stamps(self._access.size, self._elements)
        atomics = np.broadcast_to(atomic_stamps, (len(self._lane_stamps), atomic_stamps.shape[1]))[rows, columns]
        lanes, positions = self._access.lanes, self._positions(rows)
        is_seen: NDArray[np.bool_] = ((stamps & _STRONG) != 0) & (stamps <= atomics)
        is_seen &= self._order.in_scope(stamps, lanes, positions, (atomics & _STRONG).astype(np.int64))
        is_seen &= ~self._order.is_unordered(atomics, lanes, positions)
        return is_seen

    def _positions(self, rows: Places) -> Places:
        return rows if self._access.positions is None else self._access.positions[rows]

    def _changes_value(self, rows: Places) -> NDArray[np.bool_]:
        """False where a store leaves the bytes as they are: then no order makes a difference."""
        access = self._access
        if access.value is None or not access.kind.is_write:
            return np.ones(len(rows), np.bool_)
        memory_bytes = access.space.view(U8)[: len(access.space.view(U8)) // access.size * access.size].reshape(
            -1, access.size
        )
        elements = access.elements[rows] if access.elements.ndim else access.elements
        changes: NDArray[np.bool_] = (memory_bytes[elements] != self._stored_bytes()[rows]).any(axis=1)
        return changes

    def _stored_bytes(self) -> Value:
        """The bytes that each lane stores: shape (lanes, size)."""
        value = np.atleast_1d(self._access.value)  # type: ignore[arg-type]
        if len(value) > 1 and self._access.positions is not None:
            value = value[self._access.positions]
        raw = np.ascontiguousarray(value).view(U8).reshape(len(value), -1)
        return np.broadcast_to(raw, (len(self._lane_stamps), raw.shape[1]))

    def _race_of_lanes(self) -> Race | None:
        """Lanes that store different values to one place, or lanes with atomics of a scope that has not both."""
        elements = self._access.elements
        value, scope = self._access.value, self._access.kind.scope
        if len(self._lane_stamps) == 1 or (not scope and (value is None or not value.ndim)):
            return None
        if elements.ndim:
            if isinstance(self._elements, slice) or (elements[1:] > elements[:-1]).all():
                return None
            last_stamps = self._stamps.stores.last_stamps(self._access.size, self._elements)
            losers = np.flatnonzero((last_stamps != self._lane_stamps[:, None]).any(axis=1))
            if not len(losers):
                return None
            winners = self._winners(elements, losers)
        else:
            losers = np.arange(len(self._lane_stamps) - 1)
            winners = np.full(len(losers), len(self._lane_stamps) - 1)
        if scope:
            stamps = self._lane_stamps[losers]
            has_race = ~self._order.in_scope(stamps, self._access.lanes, self._positions(winners), scope)
        else:
            stored_bytes = self._stored_bytes()
            has_race = (stored_bytes[losers] != stored_bytes[winners]).any(axis=1)
        if not has_race.any():
            return None
        position = int(np.argmax(has_race))
        return Race(int(winners[position]), int(self._lane_stamps[losers[position]]), int(np.count_nonzero(has_race)))

    @staticmethod
    def _winners(elements: Value, losers: Places) -> Places:
        """Return the last lane that stores to the element of each of ``losers``."""
        order = np.argsort(elements, kind="stable")
        last_positions: Places = np.searchsorted(elements[order], elements[losers], side="right") - 1
        winners: Places = order[last_positions]
        return winners


class UnstampedLoads:
    """Loads that have left no stamps yet. With too many of them the earlier ones are forgotten."""

    def __init__(self) -> None:
        self._loads: list[RaceSearch] = []
        self._bytes = 0

    def keep(self, load: RaceSearch) -> None:
        """Keep a load until the next store to its memory."""
        self._bytes += load.kept_bytes
        if self._bytes > _MAX_KEPT_BYTES:
            self._loads.clear()
            self._bytes = load.kept_bytes
        self._loads.append(load)

    def take(self) -> list[RaceSearch]:
        """Return the loads in their order, and keep them no longer."""
        loads, self._loads, self._bytes = self._loads, [], 0
        return loads


@dataclass(slots=True)
class AllocationUse:
    """Use of an allocation in a launch: stores to it, loads that have left stamps, and ``loads`` that have not."""

    is_stored: bool = False
    is_loaded: bool = False
    loads: UnstampedLoads = field(default_factory=UnstampedLoads)

    def stamp_loads(self) -> None:
        """Write the stamps of all loads."""
        for load in self.loads.take():
            self.is_loaded = True
            load.stamp_loads()

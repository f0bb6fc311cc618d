"""Races: accesses of two threads to the same bytes, one of them a store, in no order."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.simgpu.executor.checks.access_order import BULK, SAME, STRONG, TIME_BITS
from tui_probe.simgpu.executor.checks.accesses import gathered, scatter
from tui_probe.simgpu.executor.scalars import U8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.checks.access_order import BatchOrder, Stamps
    from tui_probe.simgpu.executor.checks.accesses import CheckedAccess
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.scalars import Value

_STRONG: Final = np.uint64(STRONG)
_COPIES: Final = np.uint64(BULK)


class Race(NamedTuple):
    """A race of lane ``number`` of an access with the access of ``stamp``; ``lanes`` have one."""

    number: int
    stamp: int
    lanes: int


class RaceSearch:
    """The races of one access at ``time`` with those before it, in a memory with ``stamps``.

    Accesses until ``floor`` are ordered.
    """

    def __init__(
        self, access: CheckedAccess, chosen: slice | Value, order: BatchOrder, stamps: Stamps, floor: int, time: int
    ) -> None:
        self._access, self._chosen, self._order, self._stamps = access, chosen, order, stamps
        threads = order.threads(access.lanes)
        self._threads = threads if access.positions is None else threads[access.positions]
        self._stamp = np.uint64(time << TIME_BITS | access.kind.flag)
        self._floor = np.uint64(floor << TIME_BITS | (1 << TIME_BITS) - 1)

    @cached_property
    def _lane_stamps(self) -> NDArray[np.uint64]:
        """The stamp of this access for each lane."""
        return self._threads | self._stamp

    @property
    def _element_stamps(self) -> NDArray[np.uint64]:
        """A stamp for each element."""
        return self._lane_stamps if self._access.elements.ndim else self._lane_stamps[-1:]

    @property
    def kept_bytes(self) -> int:
        """Memory that is kept as long as this."""
        return 0 if isinstance(self._chosen, slice) else self._chosen.nbytes

    @property
    def is_pending(self) -> bool:
        """True of a copy, which barriers do not end."""
        return bool(self._access.kind.flag & BULK)

    @property
    def time(self) -> int:
        """Time of the access."""
        return int(self._stamp) >> TIME_BITS

    @cached_property
    def _stores(self) -> Value:
        """Stamps of the stores before: shape (lanes or one, granules)."""
        return gathered(self._stamps.stores(self._access.size), self._chosen)

    def unstored(self) -> NDArray[np.bool_]:
        """Return, per lane or for all, whether no byte has been stored; no lanes if all bytes have."""
        if self._stores.all():
            return np.zeros(0, np.bool_)
        unstored: NDArray[np.bool_] = (self._stores == 0).all(axis=1)
        return unstored

    def with_stores(self) -> list[Race]:
        """Return the race with a store before, if there is one."""
        strong = bool(self._access.kind.flag & STRONG)
        if strong and not self._access.kind.writes:
            # It finds the value of before or after the store, as one that polls a flag expects.
            return []
        # So does a load next to a strong store, as in front of a loop with an atomic compare-and-swap.
        return self._races(self._stores, ignores_strong=strong or not self._access.kind.writes)

    def with_loads(self) -> list[Race]:
        """Return the race of a store with a load before, if there is one."""
        if self._access.kind.flag & STRONG:
            return []
        loads = gathered(self._stamps.loads(self._access.size), self._chosen)
        return self._races(loads, ignores_strong=True)

    def stamp_loads(self) -> None:
        """Leave the stamps of a load."""
        scatter(self._stamps.loads(self._access.size), self._chosen, self._element_stamps)

    def stamp_stores(self) -> list[Race]:
        """Leave the stamps of a store. Return the race of its lanes with each other, if there is one."""
        scatter(self._stamps.stores(self._access.size), self._chosen, self._element_stamps)
        race = None if self._access.kind.flag else self._race_of_lanes()
        return [] if race is None else [race]

    def _races(self, stamps: Value, *, ignores_strong: bool) -> list[Race]:
        race = self._race(stamps, ignores_strong=ignores_strong)
        return [] if race is None else [race]

    def _race(self, before: Value, *, ignores_strong: bool) -> Race | None:
        """The race with the accesses that have the stamps ``before``: shape (lanes or one, granules)."""
        if not self._order.has_copies and before.max() <= self._floor:
            return None
        recent = (before > self._floor) | (((before & _COPIES) != 0) & (before > self._order.first_stamp))
        differs = recent & (((before ^ self._lane_stamps[:, None]) & SAME) != 0)
        if ignores_strong:
            differs &= (before & _STRONG) == 0
        rows, columns = np.nonzero(differs)
        if not len(rows):
            return None
        stamps = np.broadcast_to(before, differs.shape)[rows, columns]
        unordered = self._order.is_unordered(stamps, self._access.lanes, self._positions(rows))
        if unordered.any():
            unordered &= self._changes_value(rows)
        if not unordered.any():
            return None
        first = int(np.argmax(unordered))
        return Race(int(rows[first]), int(stamps[first]), len(np.unique(rows[unordered])))

    def _positions(self, rows: Places) -> Places:
        return rows if self._access.positions is None else self._access.positions[rows]

    def _changes_value(self, rows: Places) -> NDArray[np.bool_]:
        """False where a store leaves the bytes as they are: then no order makes a difference."""
        access = self._access
        if access.value is None or not access.kind.writes:
            return np.ones(len(rows), np.bool_)
        held = access.space.view(U8)[: len(access.space.view(U8)) // access.size * access.size].reshape(-1, access.size)
        elements = access.elements[rows] if access.elements.ndim else access.elements
        changes: NDArray[np.bool_] = (held[elements] != self._stored()[rows]).any(axis=1)
        return changes

    def _stored(self) -> Value:
        """The bytes that each lane stores: shape (lanes, size)."""
        value = np.atleast_1d(self._access.value)  # type: ignore[arg-type]
        if len(value) > 1 and self._access.positions is not None:
            value = value[self._access.positions]
        raw = np.ascontiguousarray(value).view(U8).reshape(len(value), -1)
        return np.broadcast_to(raw, (len(self._lane_stamps), raw.shape[1]))

    def _race_of_lanes(self) -> Race | None:
        """Lanes that store different values to one place."""
        elements = self._access.elements
        value = self._access.value
        if value is None or not value.ndim or len(self._lane_stamps) == 1:
            return None
        if elements.ndim:
            if isinstance(self._chosen, slice) or (elements[1:] > elements[:-1]).all():
                return None
            held = gathered(self._stamps.stores(self._access.size), self._chosen)
            lost = np.flatnonzero((held != self._lane_stamps[:, None]).any(axis=1))
            if not len(lost):
                return None
            winner = self._winners(elements, lost)
        else:
            lost = np.arange(len(self._lane_stamps) - 1)
            winner = np.full(len(lost), len(self._lane_stamps) - 1)
        stored = self._stored()
        differs = (stored[lost] != stored[winner]).any(axis=1)
        if not differs.any():
            return None
        first = int(np.argmax(differs))
        return Race(int(winner[first]), int(self._lane_stamps[lost[first]]), int(np.count_nonzero(differs)))

    @staticmethod
    def _winners(elements: Value, lost: Places) -> Places:
        """The last lane that stores to the element of each of ``lost``."""
        order = np.argsort(elements, kind="stable")
        ends: Places = np.searchsorted(elements[order], elements[lost], side="right") - 1
        winners: Places = order[ends]
        return winners

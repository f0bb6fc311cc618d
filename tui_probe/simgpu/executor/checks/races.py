"""Races: accesses of two threads to the same bytes, one of them a store, in no order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.simgpu.executor.checks.access_order import COPIED, SAME, STRONG, TIME_BITS, TRACKED
from tui_probe.simgpu.executor.scalars import U8

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.simgpu.executor.checks.access_order import BatchOrder, Stamps
    from tui_probe.simgpu.executor.checks.accesses import CheckedAccess
    from tui_probe.simgpu.executor.lanes import Places
    from tui_probe.simgpu.executor.scalars import Value

_STRONG: Final = np.uint64(STRONG)
_COPIES: Final = np.uint64(COPIED | TRACKED)


class Race(NamedTuple):
    """A race of lane ``number`` of an access with the access of ``stamp``; ``lanes`` have one."""

    number: int
    stamp: int
    lanes: int


class RaceSearch:
    """The races of one access at ``time`` with those before it, in a memory with ``stamps``; then it has its own there.

    Accesses until ``floor`` are ordered.
    """

    def __init__(self, access: CheckedAccess, order: BatchOrder, stamps: Stamps, floor: int, time: int) -> None:
        self._access = access
        self._order = order
        threads = order.threads(access.lanes)
        if access.positions is not None:
            threads = threads[access.positions]
        self._mine: NDArray[np.uint64] = threads | np.uint64(time << TIME_BITS | access.kind.flag)
        self._floor = np.uint64(floor << TIME_BITS | (1 << TIME_BITS) - 1)
        self._stores, self._loads = stamps.stores(access.size), stamps.loads(access.size)

    def races(self) -> list[Race]:
        """The races with stores and loads before, and of lanes with each other."""
        access, elements = self._access, self._access.elements
        strong = bool(access.kind.flag & STRONG)
        # A load may race with a strong store, as in front of a loop with an atomic compare-and-swap, and a strong load
        # with any store: it finds the value of before or after it, as one that polls a flag expects.
        found = []
        if access.kind.writes or not strong:
            found.append(self._race(self._stores[elements], strong or not access.kind.writes))
        own = self._mine[:, None] if elements.ndim else self._mine[-1:]
        if access.kind.writes:
            if not strong:
                found.append(self._race(self._loads[elements], ignores_strong=True))
            self._stores[elements] = own
            if not access.kind.flag:
                found.append(self._race_of_lanes())
        else:
            self._loads[elements] = own
        return [race for race in found if race is not None]

    def _race(self, before: Value, ignores_strong: bool) -> Race | None:
        """The race with accesses of which ``before`` are the stamps: shape (lanes, granules), or (granules,)."""
        recent = before > self._floor
        if self._order.has_copies:
            recent |= (before & _COPIES) != 0
        if not recent.any():
            return None
        differs = recent & (((before ^ self._mine[:, None]) & SAME) != 0)
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
        return np.broadcast_to(raw, (len(self._mine), raw.shape[1]))

    def _race_of_lanes(self) -> Race | None:
        """Lanes that store different values to one place."""
        elements = self._access.elements
        value = self._access.value
        if value is None or not value.ndim or len(self._mine) == 1:
            return None
        if elements.ndim:
            if (elements[1:] > elements[:-1]).all():
                return None
            lost = np.flatnonzero((self._stores[elements] != self._mine[:, None]).any(axis=1))
            if not len(lost):
                return None
            winner = self._winners(elements, lost)
        else:
            lost = np.arange(len(self._mine) - 1)
            winner = np.full(len(lost), len(self._mine) - 1)
        stored = self._stored()
        differs = (stored[lost] != stored[winner]).any(axis=1)
        if not differs.any():
            return None
        first = int(np.argmax(differs))
        return Race(int(winner[first]), int(self._mine[lost[first]]), int(np.count_nonzero(differs)))

    @staticmethod
    def _winners(elements: Value, lost: Places) -> Places:
        """The last lane that stores to the element of each of ``lost``."""
        order = np.argsort(elements, kind="stable")
        ends: Places = np.searchsorted(elements[order], elements[lost], side="right") - 1
        winners: Places = order[ends]
        return winners

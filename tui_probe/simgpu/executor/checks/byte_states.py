"""States of the bytes of a memory: allocated, initialised, freed.

A state is a byte of flags per byte of memory, so that one gather answers for an access of any size. The driver sends
changes of device memory with each launch; see ``protocol``.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.simgpu.executor.scalars import U8, U64, UNSIGNED, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

ALLOCATED: Final = 1
INITIALISED: Final = 2
FREED: Final = 4
READABLE: Final = ALLOCATED | INITIALISED

CHANGE_ALLOCATED, CHANGE_INITIALISED, CHANGE_FREED, CHANGE_FORGET = 1, 2, 3, 4
"""Kinds of changes, as the driver sends them."""
_MAX_FREED: Final = 10_000
"""Freed allocations that are remembered to describe an access."""
_NULL_BYTES: Final = 1 << 16
"""Addresses below this one come from null pointers."""
_UNDERRUN_BYTES: Final = 4096
"""An access so close in front of the memory of the device is described by the first allocation."""


_MAP_NORESERVE: Final = 0x4000
"""Flag of Linux's mmap; the module ``mmap`` has it from Python 3.13 on."""


def sparse_bytes(count: int) -> mmap.mmap:
    """Zeros that take no memory until they are written. Raises OSError."""
    memory = mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory


class ByteStates:
    """States of all bytes of a buffer, as words that are as long as accesses are; of longer ones several of 8 bytes."""

    def __init__(self, states: NDArray[np.uint8]) -> None:
        self.states = states
        self._views: dict[int, Value] = {}

    @classmethod
    def uninitialised(cls, count: int) -> ByteStates:
        """Allocated bytes of memory that each launch has anew."""
        return cls(np.full(count, ALLOCATED, U8))

    def words(self, size: int) -> Value:
        """All states as accesses of ``size`` bytes see them: shape (accesses, words)."""
        states = self._views.get(size)
        if states is None:
            whole_words = self.states[: len(self.states) // size * size]
            states = whole_words.view(UNSIGNED[8 * min(size, U64.itemsize)]).reshape(-1, max(size // U64.itemsize, 1))
            self._views[size] = states
        return states

    def fill(self, start: int, end: int, flag: int) -> None:
        """Add a flag to a range."""
        self.states[start:end] |= np.uint8(flag)


@cache
def whole_word(size: int, state: int) -> Value:
    """The word of an access of ``size`` bytes that all have ``state``."""
    word: Value = np.full(min(size, 8), state, U8).view(UNSIGNED[8 * min(size, 8)])[0]
    return word


@dataclass(slots=True)
class Allocation:
    """Device memory from byte ``start`` to ``end`` of all; ``is_readable`` is None if its states have to be seen."""

    start: int
    end: int
    is_readable: bool | None = None


class GlobalStates(ByteStates):
    """States of device memory at ``base``, with the allocations that the program made."""

    def __init__(self, base: int, size: int) -> None:
        super().__init__(np.frombuffer(sparse_bytes(size), U8))
        self._base = base
        self._live: dict[int, int] = {}
        self._freed: dict[int, int] = {}
        self._allocations: list[Allocation] = []

    def find_allocation(self, start: int, end: int) -> Allocation | None:
        """The allocation that has all bytes from ``start`` to ``end``."""
        position = bisect_right(self._allocations, start, key=lambda allocation: allocation.start) - 1
        candidate = self._allocations[position] if position >= 0 else None
        return candidate if candidate is not None and end <= candidate.end else None

    def begin_launch(self) -> None:
        """A launch begins: what was not readable may be."""
        for allocation in self._allocations:
            allocation.is_readable = allocation.is_readable or None

    def is_readable(self, allocation: Allocation) -> bool:
        """Return True if all bytes were initialised when the launch began."""
        if allocation.is_readable is None:
            allocation.is_readable = bool((self.states[allocation.start : allocation.end] == READABLE).all())
        return allocation.is_readable

    def apply(self, changes: Iterable[tuple[int, int, int]]) -> None:
        """Take changes into account: kind, address, bytes."""
        has_new_ranges = False
        for kind, address, size in changes:
            has_new_ranges |= kind != CHANGE_INITIALISED
            start = address - self._base
            piece = self.states[max(start, 0) : start + size]
            if kind == CHANGE_ALLOCATED:
                self._live[address] = size
                piece[:] = ALLOCATED
            elif kind == CHANGE_INITIALISED:
                piece |= np.uint8(INITIALISED)
            elif kind == CHANGE_FREED:
                self._live.pop(address, None)
                self._remember_freed(address, size)
                piece[:] = FREED
            elif kind == CHANGE_FORGET:
                self._forget()
        if has_new_ranges:
            ranges = ((address - self._base, size) for address, size in sorted(self._live.items()))
            self._allocations = [Allocation(start, start + size) for start, size in ranges]

    def _forget(self) -> None:
        for address, size in self._live.items():
            self.states[address - self._base : address - self._base + size] = 0
        self._live.clear()

    def _remember_freed(self, address: int, size: int) -> None:
        self._freed.pop(address, None)
        self._freed[address] = size
        while len(self._freed) > _MAX_FREED:
            self._freed.pop(next(iter(self._freed)))

    def describe(self, address: int) -> str:
        """The allocation nearest to an invalid address: ``8 bytes after an allocation of 4096 bytes at 0x…``.

        Between two allocations that are equally near, the access is an overrun of the first.
        """
        freed_range = _last_range(self._freed, address)
        if freed_range is not None and address < sum(freed_range) and self.states[address - self._base] & FREED:
            start, size = freed_range
            return f"byte {address - start} of a freed allocation of {size} bytes at {start:#x}"
        lower_range = _last_range(self._live, address)
        upper_start = min((start for start in self._live if start > address), default=None)
        if not self._base - _UNDERRUN_BYTES <= address < self._base + len(self.states):
            null = "the pointer is null" if address < _NULL_BYTES else "a host pointer, or not a pointer"
            return f"{address:#x} is not in device memory: {null}"
        distance = 0 if lower_range is None else address - lower_range[0] - lower_range[1]
        if lower_range is not None and (upper_start is None or distance <= upper_start - address):
            allocation = f"an allocation of {lower_range[1]} bytes at {lower_range[0]:#x}"
            if distance < 0:
                return f"across the end of {allocation}, from byte {address - lower_range[0]}"
            return f"{distance_after(distance)} {allocation}"
        if upper_start is not None:
            size = self._live[upper_start]
            return f"{upper_start - address} bytes before an allocation of {size} bytes at {upper_start:#x}"
        return "no memory is allocated"


def distance_after(count: int) -> str:
    """Return ``8 bytes after``, or ``directly after`` for an access that begins where a range ends."""
    return f"{count} bytes after" if count else "directly after"


def _last_range(ranges: dict[int, int], address: int) -> tuple[int, int] | None:
    """The last range that starts at or before an address."""
    addresses = sorted(ranges)
    position = bisect_right(addresses, address)
    return (addresses[position - 1], ranges[addresses[position - 1]]) if position else None

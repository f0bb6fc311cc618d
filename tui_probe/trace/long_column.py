"""Columns of whole numbers that grow for as long as a program runs: the newest in memory, older ones in a file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from tui_probe.trace.spill import Spill

_OF_KERNEL: Final = 1 << 10


class LongColumn(Sequence[int]):
    """Numbers of one ``array`` type code. One thread appends and changes; any may read meanwhile.

    At most two blocks of ``block`` numbers are in memory, and one that was read from the file last.
    """

    __slots__ = ("_block", "_changes", "_dtype", "_last", "_places", "_spill", "_tail")

    def __init__(self, typecode: str, spill: Spill, block: int) -> None:
        self._spill, self._block = spill, block
        self._dtype = np.dtype(typecode)
        self._places = array("Q")
        # Both change at once: whoever reads them together sees each number exactly once.
        self._tail: tuple[int, array[int]] = (0, array(typecode))
        self._changes = 0
        self._last: tuple[int, int, NDArray[Any]] | None = None

    # -- growing

    def append(self, value: int) -> None:
        """One more."""
        tail = self._tail[1]
        tail.append(value)
        if len(tail) >= 2 * self._block:
            self._settle()

    def extend(self, values: Sequence[int] | NDArray[Any]) -> None:
        """Many more."""
        self.frombytes(np.ascontiguousarray(values, dtype=self._dtype).tobytes())

    def frombytes(self, data: bytes) -> None:
        """Many more, as the bytes of an array of this type."""
        tail = self._tail[1]
        tail.frombytes(data)
        if len(tail) >= 2 * self._block:
            self._settle()

    def _settle(self) -> None:
        """Write whole blocks, all but the last."""
        first, tail = self._tail
        done = 0
        while len(tail) - done >= 2 * self._block:
            self._places.append(self._spill.put(tail[done : done + self._block].tobytes()))
            done += self._block
        self._tail = (first + done, tail[done:])

    # -- changing

    def __setitem__(self, index: int, value: int) -> None:
        first, tail = self._tail
        if index >= first:
            tail[index - first] = value
        else:
            self.put(np.array([index]), np.array([value]))

    def put(self, indices: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Change many."""
        first, tail = self._tail
        near = indices >= first
        if near.any():
            np.frombuffer(tail, dtype=self._dtype)[indices[near] - first] = values[near]
        far, of = indices[~near], values[~near]
        for number in np.unique(far // self._block).tolist():
            chosen = far // self._block == number
            block = self._read(number).copy()
            block[far[chosen] % self._block] = of[chosen]
            self._spill.change(self._places[number], block.tobytes())
            self._changes += 1

    # -- reading

    def __len__(self) -> int:
        first, tail = self._tail
        return first + len(tail)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return self._slice(range(*index.indices(len(self))))
        first, tail = self._tail
        index = range(first + len(tail))[index]
        if index >= first:
            return tail[index - first]
        return int(self._read(index // self._block)[index % self._block])

    def _slice(self, chosen: range) -> list[int]:
        if not chosen:
            return []
        least = min(chosen[0], chosen[-1])
        part = self.part(least, max(chosen[0], chosen[-1]) + 1)
        found: list[int] = part[np.arange(chosen[0], chosen[-1] + chosen.step, chosen.step) - least].tolist()
        return found

    def __iter__(self) -> Iterator[int]:
        for part in self._parts(0, len(self)):
            yield from part.tolist()

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and any((part == value).any() for part in self._parts(0, len(self)))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self.part(0).astype(dtype or self._dtype, copy=False)

    def part(self, first: int, end: int | None = None) -> NDArray[Any]:
        """A copy of the numbers from ``first`` to before ``end``, by default all behind."""
        parts = list(self._parts(first, len(self) if end is None else end))
        return np.concatenate(parts) if parts else np.zeros(0, self._dtype)

    def last_of(self, value: int) -> int | None:
        """Where a number stands last; looked for from the end."""
        first, tail = self._tail
        found = np.flatnonzero(np.array(tail[:]) == value)
        if len(found):
            return first + int(found[-1])
        for number in range(first // self._block - 1, -1, -1):
            found = np.flatnonzero(self._read(number) == value)
            if len(found):
                return number * self._block + int(found[-1])
        return None

    def _parts(self, begin: int, end: int) -> Iterator[NDArray[Any]]:
        """Those from ``begin`` to before ``end``, in arrays one after another."""
        first, tail = self._tail
        for number in range(begin // self._block, -(-min(end, first) // self._block)):
            start = number * self._block
            yield self._read(number)[max(begin - start, 0) : max(end - start, 0)]
        if end > first:
            yield np.array(tail[max(begin - first, 0) : end - first], dtype=self._dtype)

    def _read(self, number: int) -> NDArray[Any]:
        """A block of the file, which must not be changed; the last one is kept."""
        last, changes = self._last, self._changes
        if last is not None and last[:2] == (number, changes):
            return last[2]
        data = self._spill.get(self._places[number], self._block * self._dtype.itemsize)
        block = np.frombuffer(data, dtype=self._dtype)
        self._last = (number, changes, block)
        return block


def row_numbers(spill: Spill) -> LongColumn:
    """Row numbers of one kernel: small blocks, since there may be thousands of kernels."""
    return LongColumn("I", spill, _OF_KERNEL)

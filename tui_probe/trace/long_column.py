"""Columns of integers that grow with a run: narrow in memory, older ones in a file without a name."""

from __future__ import annotations

import contextlib
import os
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from tui_probe.trace.plain_file import read_at

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_SPILL_DIRECTORY: Final = "/var/tmp"
"""Directory for spilled rows; the system's directory for temporary files is often in memory."""
_KERNEL_BLOCK: Final = 1 << 10
_TYPE_CODES: Final = "bhiq"
"""Type codes of ``array`` for 1, 2, 4 and 8 bytes."""
_TYPE_LIMITS: Final = {code: (int(np.iinfo(code).min), int(np.iinfo(code).max)) for code in _TYPE_CODES}
_FIRST_CAPACITY: Final = 16
"""Numbers that are added faster one by one than by NumPy."""


class Spill:
    """Pieces of bytes, kept in a file that is gone with the process. Where there is no room for it, in memory.

    One thread puts pieces in and changes them; any may read.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._end = 0
        self._is_unusable = False
        self._pieces_in_memory: dict[int, bytes] = {}

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def append(self, piece: bytes) -> int:
        """Append a piece, and return its position."""
        place = self._end
        self._end += len(piece)
        if not self._write(piece, place):
            self._pieces_in_memory[place] = piece
        return place

    def replace(self, place: int, piece: bytes) -> None:
        """Replace a piece by another one of the same size."""
        if place in self._pieces_in_memory or not self._write(piece, place):
            self._pieces_in_memory[place] = piece

    def get(self, place: int, size: int) -> bytes:
        """Return the piece of this size at a position."""
        piece = self._pieces_in_memory.get(place)
        if piece is not None:
            return piece
        assert self._file is not None
        parts, size_read = [], 0
        while size_read < size and (part := read_at(self._file, size - size_read, place + size_read)):
            parts.append(part)
            size_read += len(part)
        return b"".join(parts)

    def _write(self, piece: bytes, place: int) -> bool:
        try:
            if self._file is None and not self._is_unusable:
                self._file = _open_unnamed()
            return self._file is not None and _write_whole(self._file, piece, place)
        except OSError:
            self._is_unusable = True
            return False


def _open_unnamed() -> int:
    """An empty file that no one else can find. Raises OSError where there is no folder for one."""
    folders = [os.environ.get("TMPDIR"), _SPILL_DIRECTORY, tempfile.gettempdir()]
    for folder in filter(None, folders):
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(prefix="tui-probe-", dir=folder)
            Path(name).unlink()
            return descriptor
    raise OSError(f"no directory for temporary files: {', '.join(filter(None, folders))}")


def _write_whole(file: int, piece: bytes, place: int) -> bool:
    view = memoryview(piece)
    while len(view):
        size = os.pwrite(file, view, place)
        view, place = view[size:], place + size
    return True


class LongColumn(Sequence[int]):
    """Numbers of one ``array`` type code. One thread appends and changes; any may read meanwhile.

    At most two blocks of ``block`` numbers are in memory, and one that was read from the file last.
    """

    __slots__ = ("_block", "_changes", "_dtype", "_last_block", "_places", "_spill", "_tail")

    def __init__(self, typecode: str, spill: Spill, block: int) -> None:
        self._spill, self._block = spill, block
        self._dtype = np.dtype(typecode)
        self._places = array("Q")
        # Both change at the same time: a reader of both sees each number exactly once.
        self._tail: tuple[int, array[int]] = (0, array(typecode))
        self._changes = 0
        self._last_block: tuple[int, int, NDArray[Any]] | None = None

    # -- growing

    def append(self, value: int) -> None:
        """Append a value."""
        tail = self._tail[1]
        tail.append(value)
        if len(tail) >= 2 * self._block:
            self._spill_blocks()

    def extend(self, values: Sequence[int] | NDArray[Any]) -> None:
        """Append many values."""
        self.frombytes(np.ascontiguousarray(values, dtype=self._dtype).tobytes())

    def frombytes(self, data: bytes) -> None:
        """Append many values, given as the bytes of an array of this type."""
        tail = self._tail[1]
        tail.frombytes(data)
        if len(tail) >= 2 * self._block:
            self._spill_blocks()

    def _spill_blocks(self) -> None:
        """Write whole blocks, all but the last."""
        first, tail = self._tail
        block_start = 0
        while len(tail) - block_start >= 2 * self._block:
            self._places.append(self._spill.append(tail[block_start : block_start + self._block].tobytes()))
            block_start += self._block
        self._tail = (first + block_start, tail[block_start:])

    # -- changing

    def __setitem__(self, index: int, value: int) -> None:
        first, tail = self._tail
        if index >= first:
            tail[index - first] = value
        else:
            self.set_many(np.array([index]), np.array([value]))

    def set_many(self, indices: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Replace the values at many indices."""
        first, tail = self._tail
        in_tail = indices >= first
        if in_tail.any():
            np.frombuffer(tail, dtype=self._dtype)[indices[in_tail] - first] = values[in_tail]
        spilled, new_values = indices[~in_tail], values[~in_tail]
        for number in np.unique(spilled // self._block).tolist():
            in_block = spilled // self._block == number
            block = self._read_block(number).copy()
            block[spilled[in_block] % self._block] = new_values[in_block]
            self._spill.replace(self._places[number], block.tobytes())
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
        return int(self._read_block(index // self._block)[index % self._block])

    def _slice(self, indices: range) -> list[int]:
        if not indices:
            return []
        first_index = min(indices[0], indices[-1])
        part = self.part(first_index, max(indices[0], indices[-1]) + 1)
        values: list[int] = part[np.arange(indices[0], indices[-1] + indices.step, indices.step) - first_index].tolist()
        return values

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
        """The last position of a number, searched for from the end."""
        first, tail = self._tail
        positions = np.flatnonzero(np.array(tail[:]) == value)
        if len(positions):
            return first + int(positions[-1])
        for number in range(first // self._block - 1, -1, -1):
            positions = np.flatnonzero(self._read_block(number) == value)
            if len(positions):
                return number * self._block + int(positions[-1])
        return None

    def _parts(self, begin: int, end: int) -> Iterator[NDArray[Any]]:
        """Yield the values from ``begin`` to before ``end``, in arrays one after another."""
        first, tail = self._tail
        for number in range(begin // self._block, -(-min(end, first) // self._block)):
            start = number * self._block
            yield self._read_block(number)[max(begin - start, 0) : max(end - start, 0)]
        if end > first:
            yield np.array(tail[max(begin - first, 0) : end - first], dtype=self._dtype)

    def _read_block(self, number: int) -> NDArray[Any]:
        """A block of the file, which must not be changed; the last one is kept."""
        cached_block, changes = self._last_block, self._changes
        if cached_block is not None and cached_block[:2] == (number, changes):
            return cached_block[2]
        data = self._spill.get(self._places[number], self._block * self._dtype.itemsize)
        block = np.frombuffer(data, dtype=self._dtype)
        self._last_block = (number, changes, block)
        return block


def row_numbers(spill: Spill) -> LongColumn:
    """Row numbers of one kernel: small blocks, since there may be thousands of kernels."""
    return LongColumn("I", spill, _KERNEL_BLOCK)


class NarrowColumn:
    """Numbers of 64 bits, all in as many bytes as the widest needs. One thread extends it, any may read meanwhile."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values = array(_TYPE_CODES[0])

    def __len__(self) -> int:
        return len(self._values)

    def extend(self, values: NDArray[np.int64]) -> None:
        """Append these numbers."""
        if len(values) > _FIRST_CAPACITY:
            self._widen(int(values.min()), int(values.max()))
            self._values.frombytes(values.astype(self._values.typecode).tobytes())
            return
        numbers = values.tolist()
        try:
            self._values.fromlist(numbers)  # all of them, or none
        except OverflowError:
            self._widen(min(numbers), max(numbers))
            self._values.fromlist(numbers)

    def _widen(self, minimum: int, maximum: int) -> None:
        """Make room for numbers in this range. Anyone who reads has the array as it was, or the wider one."""
        code = next(
            code for code in _TYPE_CODES if _TYPE_LIMITS[code][0] <= minimum and maximum <= _TYPE_LIMITS[code][1]
        )
        if _TYPE_CODES.index(code) > _TYPE_CODES.index(self._values.typecode):
            self._values = array(code, self._values)

    def copy_first(self, count: int) -> NarrowColumn:
        """Return a copy of the first ``count`` numbers."""
        copy = NarrowColumn()
        copy._values = self._values[:count]
        return copy

    def numbers(self) -> NDArray[np.int64]:
        """Return a copy of all numbers (i8)."""
        return np.array(self._values, dtype=np.int64)

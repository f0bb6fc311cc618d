"""The bytes of a result file, which may be cut short or written over by others at any time.

So it is not mapped into memory: reading a page of a mapped file that is no longer there kills the process. A small file
is read once, whole; of a larger one what is asked for, when it is asked for.
"""

from __future__ import annotations

import os
import shlex
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.trace.plain_file import plain_descriptor

if TYPE_CHECKING:
    import struct
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.result_layout import Header, Section

SMALL: Final = 8 << 20
"""Bytes of a file that is read once."""


class ResultFile:
    """A file as it was when it was opened: ``size`` bytes. It stays open while it is in use, if it is not small."""

    def __init__(self, path: Path) -> None:
        """TraceError if there is no such file, or if it cannot be read."""
        self.path = path
        try:
            descriptor = plain_descriptor(path)
        except FileNotFoundError as error:
            raise TraceError(f"{path}: {_gone(path)}") from error
        except (OSError, ValueError) as error:
            raise TraceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        self._close = weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        self._whole: NDArray[np.uint8] | None = None
        self.size = os.fstat(descriptor).st_size
        if self.size <= SMALL:
            self._whole = self._read(0, self.size)
            self._close()

    def __len__(self) -> int:
        return self.size

    def part(self, at: int, size: int) -> NDArray[np.uint8]:
        """``size`` bytes from ``at`` on, which are in it: u1, read-only. TraceError if they are there no more."""
        return self._read(at, size) if self._whole is None else self._whole[at : at + size]

    def head(self, at: int, size: int) -> bytes:
        """The same as bytes, fewer at the end of the file."""
        return self.part(at, max(min(size, self.size - at), 0)).tobytes()

    def unpack(self, form: struct.Struct, at: int) -> tuple[Any, ...]:
        """The numbers from ``at`` on, which are in it."""
        return form.unpack(self.part(at, form.size).data)

    def _read(self, at: int, size: int) -> NDArray[np.uint8]:
        try:
            found, done = np.empty(size, np.uint8), 0
            while done < size and (count := os.preadv(self._descriptor, [found.data[done:]], at + done)):
                done += count
        except OSError as error:
            raise TraceError(f"{self.path}: cannot be read: {error.strerror}") from error
        except MemoryError as error:
            raise TraceError(f"{self.path}: there is no memory for {size} bytes of it") from error
        if done < size:
            raise TraceError(f"{self.path}: it was cut short at {at + done} while it was open: open it again")
        found.flags.writeable = False
        return found


def _gone(path: Path) -> str:
    """What to do about a file that is no longer there."""
    packed = path.with_name(f"{path.name}.xz")
    if packed.is_file():
        return f"it is packed as {packed.name}: unpack it with xz -d {shlex.quote(str(packed))}"
    return "it is no longer there: run again, or name the trace that has it"


class Maps(Sequence["NDArray[np.uint8]"]):
    """The maps of a file: read-only u1 arrays of shape (measured blocks, slots per block, bytes per slot).

    Each is read when it is asked for, and kept for as long as anybody has it.
    """

    def __init__(self, file: ResultFile, header: Header, sections: Sequence[Section]) -> None:
        self._file, self._header, self._sections = file, header, sections
        self._read: weakref.WeakValueDictionary[int, NDArray[np.uint8]] = weakref.WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._sections)

    def shape(self, index: int) -> tuple[int, int, int]:
        """The shape of a map, which is not read for that."""
        section = self._sections[index]
        return self._header.blocks, self._header.slots(section.level), section.slot_bytes

    @overload
    def __getitem__(self, index: int) -> NDArray[np.uint8]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NDArray[np.uint8]]: ...
    def __getitem__(self, index: int | slice) -> NDArray[np.uint8] | Sequence[NDArray[np.uint8]]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        found = self._read.get(index)
        if found is None:
            shape = self.shape(index)
            found = self._file.part(self._sections[index].offset, shape[0] * shape[1] * shape[2])
            self._read[index] = found
        return found.reshape(self.shape(index))

    def blocks(self, index: int, first: int, last: int) -> NDArray[np.uint8]:
        """A map's blocks from ``first`` to before ``last``, read anew: shape (last - first, slots, bytes)."""
        _, slots, size = self.shape(index)
        found = self._file.part(self._sections[index].offset + first * slots * size, (last - first) * slots * size)
        return found.reshape(last - first, slots, size)

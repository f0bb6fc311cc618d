"""A result file: its bytes, its header, and its maps.

    header    eight u32 ``gridDim.xyz, blockDim.xyz, sharedMemBytes, numMaps``
    sections  one of 16 bytes per map: ``u32 bytes per slot, u32 warpDiv, u64 offset``; in files of older systems ``u64
              bytes of the whole map, u64 offset``, which leaves open whether a slot is a thread's or a warp's
    maps      the slots of each, slot = block_linear × slots_per_block + slot, slots_per_block = ceil(threads / warpDiv)

All numbers are little-endian. What files of tui-probe have behind the maps is in ``map_records``.

A file is not mapped into memory: reading a page of a mapped file that is no longer there kills the process. A small
file is read once, whole; of a larger one what is asked for, when it is asked for.
"""

from __future__ import annotations

import os
import shlex
import struct
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.trace.launch_shape import WARP_SIZE, Header, Section
from tui_probe.trace.plain_file import plain_descriptor, read_into

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.trace.launch_shape import Level

SMALL_FILE: Final = 8 << 20
"""Bytes of a file that is read once."""
_HEADER: Final = struct.Struct("<8I")
_SECTION: Final = struct.Struct("<IIQ")
_OLDER_SECTION: Final = struct.Struct("<QQ")
_MAX_MAPS: Final = 4096
"""Maps of a file above which its header is taken for damaged."""

Dialect = Literal["current", "older"]


class ResultFile:
    """A file as it was when it was opened: ``size`` bytes. It stays open while it is in use, if it is not small."""

    def __init__(self, path: Path) -> None:
        """TraceError if there is no such file, or if it cannot be read."""
        self.path = path
        try:
            descriptor = plain_descriptor(path)
        except FileNotFoundError as error:
            raise TraceError(f"{path}: {_missing_file_advice(path)}") from error
        except (OSError, ValueError) as error:
            raise TraceError(f"{path}: not readable: {getattr(error, 'strerror', None) or error}") from error
        self._close = weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        self._content: NDArray[np.uint8] | None = None
        self.size = os.fstat(descriptor).st_size
        if self.size <= SMALL_FILE:
            self._content = self._read_bytes(0, self.size)
            self._close()

    def __len__(self) -> int:
        return self.size

    def part(self, offset: int, size: int) -> NDArray[np.uint8]:
        """``size`` bytes from ``offset`` on, which are in it: u1, read-only. TraceError if they are there no more."""
        return self._read_bytes(offset, size) if self._content is None else self._content[offset : offset + size]

    def head(self, offset: int, size: int) -> bytes:
        """Return bytes of the file, fewer at its end."""
        return self.part(offset, max(min(size, self.size - offset), 0)).tobytes()

    def unpack(self, form: struct.Struct, offset: int) -> tuple[Any, ...]:
        """The numbers from ``offset`` on, which are in it."""
        return form.unpack(self.part(offset, form.size).data)

    def _read_bytes(self, offset: int, size: int) -> NDArray[np.uint8]:
        try:
            buffer, size_read = np.empty(size, np.uint8), 0
            while size_read < size and (
                count := read_into(self._descriptor, buffer.data[size_read:], offset + size_read)
            ):
                size_read += count
        except OSError as error:
            raise TraceError(f"{self.path}: not readable: {error.strerror}") from error
        except MemoryError as error:
            raise TraceError(f"{self.path}: not enough memory for {size} bytes") from error
        if size_read < size:
            raise TraceError(f"{self.path}: truncated at byte {offset + size_read} while open; open the file again")
        buffer.flags.writeable = False
        return buffer


def _missing_file_advice(path: Path) -> str:
    """Advice on a file that is no longer there."""
    return compressed_result_advice(path) or "the file no longer exists; run again, or pass another trace"


def compressed_result_advice(path: Path) -> str:
    """Advice on a result that the trace has only compressed, with the command that unpacks all of them; "" else."""
    packed = path.with_name(f"{path.name}.xz")
    if path.is_file() or not packed.is_file():
        return ""
    return (
        f"the file is compressed as {packed.name}; unpack all results with xz -d {shlex.quote(str(path.parent))}/*.xz"
    )


class Maps(Sequence["NDArray[np.uint8]"]):
    """The maps of a file: read-only u1 arrays of shape (measured blocks, slots per block, bytes per slot).

    Each is read when it is asked for, and kept for as long as anybody has it.
    """

    def __init__(self, file: ResultFile, header: Header, sections: Sequence[Section]) -> None:
        self._file, self._header, self._sections = file, header, sections
        self._arrays: weakref.WeakValueDictionary[int, NDArray[np.uint8]] = weakref.WeakValueDictionary()

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
            return [self[i] for i in range(*index.indices(len(self)))]
        raw = self._arrays.get(index)
        if raw is None:
            shape = self.shape(index)
            raw = self._file.part(self._sections[index].offset, shape[0] * shape[1] * shape[2])
            self._arrays[index] = raw
        return raw.reshape(self.shape(index))

    def blocks(self, index: int, first: int, last: int) -> NDArray[np.uint8]:
        """A map's blocks from ``first`` to before ``last``, read anew: shape (last - first, slots, bytes)."""
        _, slots, size = self.shape(index)
        raw = self._file.part(self._sections[index].offset + first * slots * size, (last - first) * slots * size)
        return raw.reshape(last - first, slots, size)


def read_header(path: Path, data: ResultFile) -> Header:
    if len(data) < _HEADER.size:
        raise TraceError(
            f"{path}: the file has {len(data)} bytes, but a header needs {_HEADER.size}; the file is truncated"
        )
    x, y, z, bx, by, bz, shared_bytes, maps = data.unpack(_HEADER, 0)
    if 0 in (x, y, z):
        raise TraceError(f"{path}, offset 0: the grid would be {x}×{y}×{z}, so this is not a result file")
    if 0 in (bx, by, bz):
        raise TraceError(f"{path}, offset 12: the block would be {bx}×{by}×{bz}, so this is not a result file")
    if x * y * z * bx * by * bz >= 1 << 62:
        raise TraceError(
            f"{path}, offset 0: the grid would be {x}×{y}×{z} blocks of {bx}×{by}×{bz} threads, so this is not a result"
            " file"
        )
    if maps > _MAX_MAPS:
        raise TraceError(f"{path}, offset 28: the file would have {maps} maps, so this is not a result file")
    end = _HEADER.size + maps * _SECTION.size
    if len(data) < end:
        raise TraceError(
            f"{path}, offset {_HEADER.size}: {maps} maps need {end} bytes, but {len(data)} exist; the file is truncated"
        )
    return Header((x, y, z), (bx, by, bz), shared_bytes, maps)


def read_sections(
    path: Path, data: ResultFile, header: Header, levels: Sequence[Level] | None
) -> tuple[tuple[Section, ...], Dialect]:
    """The sections in the dialect that they make sense in; if both do, in the one that fills the file exactly."""
    if levels is not None and len(levels) != header.maps:
        raise TraceError(
            f"{path}, offset 28: the file has {header.maps} maps instead of {len(levels)}; another probe wrote the file"
        )
    readings: list[tuple[int, tuple[Section, ...], Dialect]] = []
    errors: list[TraceError] = []
    for dialect, read_dialect in (("current", _current_sections), ("older", _older_sections)):
        try:
            sections = read_dialect(path, data, header, levels)
            slack = _check_sections(path, header, sections, len(data))
            readings.append((slack, sections, dialect))  # type: ignore[arg-type]
        except TraceError as error:
            errors.append(error)
    if not readings:
        raise errors[0] if _looks_current(data, header) else errors[1]
    _, best, dialect = min(readings, key=lambda reading: reading[0])
    return best, dialect


def _looks_current(data: ResultFile, header: Header) -> bool:
    """True if the error to show is that of the current dialect: older sizes have no upper half below 4 GiB."""
    return all(data.unpack(_SECTION, _section_offset(i))[1] for i in range(header.maps))


def _section_offset(index: int) -> int:
    return _HEADER.size + index * _SECTION.size


def _current_sections(
    path: Path, data: ResultFile, header: Header, levels: Sequence[Level] | None
) -> tuple[Section, ...]:
    sections = []
    for index in range(header.maps):
        section_offset = _section_offset(index)
        slot_bytes, divisor, offset = data.unpack(_SECTION, section_offset)
        if divisor not in (1, WARP_SIZE):
            raise TraceError(
                f"{path}, offset {section_offset + 4}: {divisor} threads per slot instead of 1 or {WARP_SIZE}"
            )
        level: Level = "thread" if divisor == 1 else "warp"
        if levels is not None and levels[index] != level:
            raise TraceError(
                f"{path}, offset {section_offset + 4}: the file has one slot per {level}, but kernel.info says one per"
                f" {levels[index]}"
            )
        sections.append(Section(level, slot_bytes, offset))
    return tuple(sections)


def _older_sections(
    path: Path, data: ResultFile, header: Header, levels: Sequence[Level] | None
) -> tuple[Section, ...]:
    sections = []
    for index in range(header.maps):
        section_offset = _section_offset(index)
        size, offset = data.unpack(_OLDER_SECTION, section_offset)
        level = levels[index] if levels is not None else _likely_level(header, size)
        slots = header.blocks * header.slots(level)
        if size % slots:
            raise TraceError(
                f"{path}, offset {section_offset}: {size} bytes cannot be divided evenly among {slots} {level} slots"
            )
        sections.append(Section(level, size // slots, offset))
    return tuple(sections)


def _likely_level(header: Header, size: int) -> Level:
    """One slot per thread if that gives each a multiple of 8 bytes, as records with a u64 field have; else per warp."""
    return "thread" if size and size % (8 * header.blocks * header.threads) == 0 else "warp"


def _check_sections(path: Path, header: Header, sections: tuple[Section, ...], size: int) -> int:
    """Check that sections are in the file and apart; how many bytes after the section table are in none of them."""
    maps_start = end = _section_offset(len(sections))
    for section in sorted(sections, key=lambda section: section.offset):
        section_offset = _section_offset(sections.index(section))
        if section.offset < maps_start:
            raise TraceError(f"{path}, offset {section_offset + 8}: the map at {section.offset} overlaps the header")
        if section.offset < end and section.size(header):
            raise TraceError(
                f"{path}, offset {section_offset + 8}: the map at {section.offset} overlaps the map that ends at {end}"
            )
        end = max(end, section.offset + section.size(header))
        if end > size:
            raise TraceError(
                f"{path}, offset {section_offset}: a map ends at byte {end}, the file at {size}; the file is truncated"
            )
    return size - maps_start - sum(section.size(header) for section in sections)

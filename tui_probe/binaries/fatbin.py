"""Fatbin containers: the PTX and the cubins of one source file, packed by nvcc.

The format is not documented by NVIDIA; the layout here is what nvcc 12 and 13 write. A container is a header of
16 bytes and entries, each a header and a payload. Several containers may follow one another.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import lz4.block

from tui_probe.errors import ImageError
from tui_probe.input_limits import UNPACKED_IMAGES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterator

FATBIN_MAGIC: Final = 0xBA55ED50.to_bytes(4, "little")
_CONTAINER: Final = struct.Struct("<IHHQ")
_ENTRY: Final = struct.Struct("<HHIQIIHHIIIQQQ")
_MIN_HEADER_BYTES: Final = 48  # up to and with the flags; the uncompressed size is there for compressed entries
_LZ4: Final = 0x2000
_ZSTD: Final = 0x8000
_ARCH_SPECIFIC: Final = 0x100000
_FAMILY_SPECIFIC: Final = 0x200000
_GENERATION: Final = 10  # architectures 90 to 99 are one
_MAX_COMPRESSION_RATIO: Final = 64
"""Maximum decompressed bytes for each byte of the file: compilers' output shrinks to a fifth to a twentieth."""
_TRUNCATED_TEXT: Final = "fatbin truncated: {} bytes are needed, but only {} exist; extract or record the image again"


# Both implementations of Zstandard take a limit: a small frame may claim any size, but an entry states its size.
if sys.version_info >= (3, 14):
    ZstdError = zstd.ZstdError

    def zstd_content_size(frame: bytes) -> int | None:
        """Return the size that the frame states, None if it states none. Raises ZstdError."""
        return zstd.get_frame_info(frame).decompressed_size

    def zstd_decompress(frame: bytes, limit: int) -> bytes:
        """Return the content of a frame. Raises ZstdError if it is damaged, cut off or larger than ``limit`` bytes."""
        decompressor = zstd.ZstdDecompressor()
        content = decompressor.decompress(frame, max_length=limit)
        if not decompressor.eof and decompressor.decompress(b"", max_length=1):
            raise ZstdError(f"decompressed data is larger than {limit} bytes")
        if not decompressor.eof:
            raise ZstdError("the zstd frame is truncated")
        return content

else:
    ZstdError = zstandard.ZstdError

    def zstd_content_size(frame: bytes) -> int | None:
        """Return the size that the frame states, None if it states none. Raises ZstdError."""
        size = zstandard.frame_content_size(frame)
        return None if size < 0 else size

    def zstd_decompress(frame: bytes, limit: int) -> bytes:
        """Return the content of a frame. Raises ZstdError if it is damaged, cut off or larger than ``limit`` bytes."""
        return zstandard.ZstdDecompressor().decompress(frame, max_output_size=limit)


class EntryKind(IntEnum):
    """Kind of image in an entry."""

    PTX = 1
    ELF = 2


@dataclass(frozen=True, slots=True)
class FatbinEntry:
    """One entry. ``arch`` is 90 for sm_90; ``size`` is that of the content in bytes, 0 if it is not compressed.

    It refers to ``image``, of which it is the bytes from ``start`` to ``end``: a library has hundreds of entries, most
    of them for other GPUs.
    """

    kind: int
    arch: int
    flags: int
    size: int
    image: bytes = field(repr=False)
    start: int
    end: int

    @property
    def payload(self) -> bytes:
        """Bytes of the entry as stored in the file."""
        return self.image[self.start : self.end]

    def detached(self) -> FatbinEntry:
        """Return the entry without the rest of its image, to be kept longer than that."""
        payload = self.payload
        return replace(self, image=payload, start=0, end=len(payload))

    def runs_on(self, arch: int) -> bool:
        """Return whether a device of ``arch`` (90) runs machine code of this entry: ``sm_90a`` on 9.0 only, others on
        later devices of the same generation, too.
        """
        if self.flags & _ARCH_SPECIFIC:
            return self.arch == arch
        return self.arch <= arch and self.arch // _GENERATION == arch // _GENERATION

    @property
    def suffix(self) -> str:
        """Return what its target has behind the number: ``a`` for ``sm_90a``, ``f`` for ``sm_100f``, or ""."""
        return "a" if self.flags & _ARCH_SPECIFIC else "f" if self.flags & _FAMILY_SPECIFIC else ""

    @property
    def rank(self) -> tuple[int, bool, bool]:
        """The larger, the rather the driver takes it, of several that a device runs: what is for the newest
        architecture, and of that what is only for it (``sm_100a``) before its family (``sm_100f``) and others.
        """
        return self.arch, bool(self.flags & _ARCH_SPECIFIC), bool(self.flags & _FAMILY_SPECIFIC)

    def content(self) -> bytes:
        """Return the payload, decompressed. Raises ImageError."""
        if not self.flags & (_LZ4 | _ZSTD):
            return self.payload
        if self.size <= 0:
            raise ImageError(f"corrupt fatbin entry: its header has a decompressed size of {self.size} bytes")
        try:
            return self._decompress()
        except (lz4.block.LZ4BlockError, ZstdError) as error:
            raise ImageError(f"a compressed fatbin entry for sm_{self.arch} cannot be decompressed: {error}") from error

    def _decompress(self) -> bytes:
        if self.flags & _LZ4:
            content: bytes = lz4.block.decompress(self.payload, uncompressed_size=self.size)
            return content
        return _zstd_content(self.payload, self.size)


@lru_cache(maxsize=1)
def _zstd_content(payload: bytes, size: int) -> bytes:
    """The content of a zstd frame. The last one is remembered: a cubin is searched for PTX first, and then read. Those
    of libraries have 10 MB, which take 10 ms or more.
    """
    if zstd_content_size(payload) not in (size, None):
        raise ImageError("corrupt fatbin entry: the entry and its zstd frame have different decompressed sizes")
    return zstd_decompress(payload, size)


def fatbin_entries(image: bytes, region: slice | None = None) -> Iterator[FatbinEntry]:
    """Yield the entries of all containers in ``image``, or in a ``region`` of it, in order. Raises as
    ``container_entries``.
    """
    for container in container_entries(image, region):
        yield from container


def container_entries(image: bytes, region: slice | None = None) -> Iterator[list[FatbinEntry]]:
    """Yield the entries of each container in ``image``, or in a ``region`` of it, in order.

    Raises ImageError if it is damaged or cut off, or if its entries together tell sizes that no compiler's output has:
    so all of them can be decompressed.
    """
    start, stop, _ = (region or slice(None)).indices(len(image))
    max_bytes = UNPACKED_IMAGES.maximum + _MAX_COMPRESSION_RATIO * (stop - start)
    declared_bytes = 0
    for entries_start, entries_end in _entry_ranges(image, start, stop):
        entries = []
        for entry in _read_entries(image, entries_start, entries_end):
            declared_bytes += entry.size
            if declared_bytes > max_bytes:
                raise ImageError(
                    f"corrupt fatbin of {stop - start} bytes: its decompressed entries exceed {max_bytes} bytes"
                )
            entries.append(entry)
        yield entries


def _entry_ranges(image: bytes, position: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the entries of each container."""
    while image.startswith(FATBIN_MAGIC, position, stop):
        if position + _CONTAINER.size > stop:
            raise ImageError(_TRUNCATED_TEXT.format(_CONTAINER.size, stop - position))
        _, _, header_size, size = _CONTAINER.unpack_from(image, position)
        end = position + header_size + size
        if header_size < _CONTAINER.size or end > stop:
            raise ImageError(_TRUNCATED_TEXT.format(header_size + size, stop - position))
        yield position + header_size, end
        position = _skip_padding(image, end, stop)


def _skip_padding(image: bytes, position: int, stop: int) -> int:
    while position < stop and image[position] == 0:
        position += 1
    return position


def _read_entries(image: bytes, position: int, end: int) -> Iterator[FatbinEntry]:
    while position + _MIN_HEADER_BYTES <= end:
        header = image[position : position + _ENTRY.size].ljust(_ENTRY.size, b"\0")
        kind, _, header_size, payload_size, compressed_size, _, _, _, arch, _, _, flags, _, size = _ENTRY.unpack(header)
        start = position + header_size
        position = start + payload_size
        if header_size < _MIN_HEADER_BYTES or position > end:
            raise ImageError(_TRUNCATED_TEXT.format(header_size + payload_size, end - start + header_size))
        if compressed_size > payload_size:
            raise ImageError("corrupt fatbin entry: the entry is shorter than its compressed content")
        is_compressed = flags & (_LZ4 | _ZSTD)
        content_end = start + (compressed_size if is_compressed else payload_size)
        yield FatbinEntry(kind, arch, flags, size if is_compressed else 0, image, start, content_end)

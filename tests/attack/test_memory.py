"""Small files that claim to be large cost little memory and time."""

from __future__ import annotations

import contextlib
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import lz4.block
import pytest

from tests.engine.cubin_entries import cubins_in
from tests.ptx.images import zstd_frame
from tui_probe.binaries import elf
from tui_probe.binaries.cubin import Cubin
from tui_probe.binaries.fatbin import FATBIN_MAGIC, fatbin_entries
from tui_probe.binaries.line_tables import line_tables, source_locations
from tui_probe.errors import ImageError
from tui_probe.ptx.images import ptx_texts
from tui_probe.simgpu.registers import register_counts

PTX, CUBIN, LZ4, ZSTD = 1, 2, 0x2000, 0x8000
_ELF = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@contextmanager
def bounded(megabytes: int, seconds: float) -> Iterator[None]:
    """Check that the block allocates no more than this, and takes no more CPU time, which load does not stretch."""
    tracemalloc.start()
    begin = time.thread_time()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes << 20
    assert time.thread_time() - begin < seconds


def fatbin(*made: tuple[int, int, int, bytes]) -> bytes:
    """Entries of (kind, flags, claimed size, payload)."""
    body = b"".join(
        struct.pack("<HHIQIIHHIIIQQQ", kind, 1, 64, len(payload), len(payload), 0, 0, 0, 90, 0, 0, flags, 0, size)
        + payload
        for kind, flags, size, payload in made
    )
    return FATBIN_MAGIC + struct.pack("<HHQ", 1, 16, len(body)) + body


def zeros(flag: int, size: int) -> bytes:
    content = bytes(size)
    if flag == LZ4:
        packed: bytes = lz4.block.compress(content, store_size=False)
        return packed
    return zstd_frame(content)


def elf_image(sections: list[tuple[int, int, int, int]], tail: bytes, machine: int = 190) -> bytes:
    """Of sections (name, type, offset in the tail, size); the last one has the names."""
    head = _ELF.size + _SECTION.size * (len(sections) + 1)
    table = _SECTION.pack(*[0] * 10) + b"".join(
        _SECTION.pack(name, kind, 0, 0, head + offset, size, len(sections), 0, 1, 24)
        for name, kind, offset, size in sections
    )
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = _ELF.pack(ident, 2, machine, 1, 0, 0, _ELF.size, 90, 64, 0, 0, 64, len(sections) + 1, len(sections))
    return header + table + tail


@pytest.mark.parametrize("flag", [LZ4, ZSTD])
def test_a_small_fatbin_that_grows_is_refused_before_it_does(flag: int) -> None:
    large = zeros(flag, 8 << 20)
    image = fatbin(*[(PTX, flag, 8 << 20, large)] * (100_000 // len(large) + 40))
    with bounded(150, 2), pytest.raises(ImageError, match="corrupt fatbin"):
        ptx_texts(image)
    with bounded(150, 2), pytest.raises(ImageError, match="corrupt fatbin"):
        list(cubins_in(image, {90}))


def test_claimed_size_allocates_nothing() -> None:
    with bounded(20, 1), pytest.raises(ImageError, match="corrupt fatbin"):
        list(fatbin_entries(fatbin((PTX, LZ4, 1 << 30, b"\x10a"))))


def test_a_fatbin_in_a_cubin_in_a_fatbin_is_not_unpacked() -> None:
    """Else each level could grow anew."""
    inner = fatbin((PTX, 0, 0, b".version 8.0\n.target sm_90\n"))
    names = b".nv_fatbin\0"
    cubin = elf_image([(0, 1, 0, len(inner)), (0, 3, len(inner), len(names))], inner + names)
    assert [text.arch for text in ptx_texts(cubin)] == [90]
    assert ptx_texts(fatbin((CUBIN, 0, 0, cubin))) == []


def test_compressed_images_of_compilers_are_read() -> None:
    text = b".version 8.0\n.target sm_90\n" + b"".join(b"add.s32 %%r%d, %%r1, %%r2;\n" % i for i in range(200_000))
    packed = zstd_frame(text)
    (found,) = ptx_texts(fatbin((PTX, ZSTD, len(text), packed)))
    assert found.text.encode() == text


@pytest.mark.parametrize(
    ("name", "read"),
    [
        (b".debug_line", line_tables),
        (b".debug_line", lambda image: source_locations(image, "k", 1 << 20)),
        (b".nv_debug_line_sass", line_tables),
        (b".symtab", register_counts),
        (b".text.k", lambda image: list(elf.section_slices(image))),
    ],
)
def test_overlapping_sections_are_read_once(name: bytes, read: Callable[[bytes], object]) -> None:
    tail = name + bytes(800_000)
    with bounded(60, 2), contextlib.suppress(ImageError):
        read(elf_image([(0, 1, 0, len(tail))] * 12_000, tail))


@pytest.mark.parametrize(
    ("name", "read"),
    [(b".text.k", Cubin.read), (b".nv_debug_ptx_txt", ptx_texts), (b".nv_fatbin", ptx_texts)],
)
def test_overlapping_sections_that_are_read_whole(name: bytes, read: Callable[[bytes], object]) -> None:
    tail = name + bytes(800_000)
    with bounded(60, 2), pytest.raises(ImageError, match="over"):
        read(elf_image([(0, 1, 0, len(tail))] * 12_000, tail))


@pytest.mark.parametrize("read", [Cubin.read, elf.Sections])
def test_names_of_sections_that_do_not_end(read: Callable[[bytes], object]) -> None:
    tail = b"x" * 800_000
    image = elf_image([*[(0, 1, 0, 0)] * 12_000, (0, 3, 0, len(tail))], tail)
    with bounded(60, 2), pytest.raises(ImageError, match="name is not terminated"):
        read(image)


def test_names_of_symbols_that_do_not_end() -> None:
    symbols = _SYMBOL.pack(0, 0x12, 0x10, 1, 0, 0) * 30_000
    tail = symbols + b"x" * 800_000
    sections = [(800_000, 2, 0, len(symbols)), (800_000, 3, len(symbols), 800_000)]
    cubin = Cubin.read(elf_image(sections, tail))
    with bounded(60, 2), pytest.raises(ImageError, match="name is not terminated"):
        assert cubin.symbols

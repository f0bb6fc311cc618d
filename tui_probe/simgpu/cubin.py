"""What a cubin tells of its kernels' machine code.

``.nv.info`` is a list of attributes: u8 format, u8 attribute, u16 size, then so many bytes. The register count
(attribute 0x2f, format 4) is u32 symbol index, u32 registers. ``cuobjdump -elf`` prints it as EIATTR_REGCOUNT.
"""

from __future__ import annotations

import struct
from typing import Final

from tui_probe.ptx import elf

REGISTER_COUNT: Final = 0x2F
SIZED_VALUE: Final = 0x04
SYMBOL: Final = struct.Struct("<IBBHQQ")


def register_counts(image: bytes) -> dict[str, int]:
    """Registers of a thread of each kernel, by name; empty for anything but a cubin. Raises ImageError."""
    if not image.startswith(elf.MAGIC):
        return {}
    sections = elf.Sections(image)
    names = symbol_names(sections.get(".symtab", b""), sections.get(".strtab", b""))
    info = sections.get(".nv.info", b"")
    counts = {}
    position = 0
    while position + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, position)
        content = info[position + 4 : position + 4 + size] if form == SIZED_VALUE else b""
        if attribute == REGISTER_COUNT and len(content) == 8:
            symbol, count = struct.unpack("<II", content)
            if symbol < len(names):
                counts[names[symbol]] = count
        position += 4 + len(content)
    return counts


def symbol_names(table: bytes, strings: bytes) -> list[str]:
    """The names of an ELF file's symbols, by index."""
    whole = table[: len(table) // SYMBOL.size * SYMBOL.size]
    starts = [fields[0] for fields in SYMBOL.iter_unpack(whole)]
    return [strings[start : strings.find(b"\0", start)].decode("utf-8", "replace") for start in starts]

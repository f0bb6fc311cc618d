"""A cubin for tests: PTX and register counts in an ELF file, without machine code."""

from __future__ import annotations

import struct


def cubin(ptx: str, registers: dict[str, int]) -> bytes:
    """An ELF file that keeps ``ptx`` as a cubin does, and tells the registers of each kernel."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in registers)
    starts = [0, *(names.index(b"\0" + name.encode() + b"\0") + 1 for name in registers)]
    symbols = b"".join(struct.pack("<IBBHQQ", start, 0, 0, 0, 0, 0) for start in starts)
    counts = b"".join(
        struct.pack("<BBHII", 4, 0x2F, 8, symbol, count) for symbol, count in enumerate(registers.values(), 1)
    )
    # Before them an attribute without content and one of another kind, as compilers write.
    info = struct.pack("<BBH", 3, 0x1B, 0xFF) + struct.pack("<BBHI", 4, 0x11, 4, 1) + counts
    return _file(
        {
            ".nv_debug_ptx_txt": ptx.encode().replace(b"\n", b"\0") + b"\0",
            ".strtab": names,
            ".symtab": symbols,
            ".nv.info": info,
        }
    )


def _file(sections: dict[str, bytes]) -> bytes:
    contents = {"": b"", **sections, ".shstrtab": b""}
    contents[".shstrtab"] = b"".join(name.encode() + b"\0" for name in contents)
    body, headers, name_start = b"", b"", 0
    for name, content in contents.items():
        kind = 1 if name else 0
        headers += struct.pack("<IIQQQQIIQQ", name_start, kind, 0, 0, 64 + len(body), len(content), 0, 0, 1, 0)
        body += content
        name_start += len(name) + 1
    identity = b"\x7fELF\2\1\1" + bytes(9)
    table = 64 + len(body)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", identity, 2, 190, 1, 0, 0, table, 0, 64, 56, 0, 64, len(contents), len(contents) - 1
    )
    return header + body + headers

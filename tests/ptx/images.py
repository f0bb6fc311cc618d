"""Images made in tests: fatbins as nvcc packs them, and programs that they are in."""

from __future__ import annotations

import struct
import sys

import lz4.block

from tests.ptx.corpus import HEADER

if sys.version_info >= (3, 14):
    from compression.zstd import compress as zstd_frame
else:
    from zstandard import compress as zstd_frame

__all__ = ["fatbin_of", "program", "ptx", "zstd_frame"]
_ELF = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")


def ptx(target: str, *entries: str) -> str:
    header = HEADER.replace("sm_90a", target)
    return header + "".join(f".visible .entry {entry}()\n{{\n\tret;\n}}\n" for entry in entries)


def fatbin_of(*texts: tuple[int, str], compress: str = "", cubin: tuple[int, bytes] | None = None) -> bytes:
    """One container with a PTX entry for each (arch, text), packed as nvcc does, and with a cubin (arch, content)."""
    body = b""
    if cubin is not None:
        arch, content = cubin
        body += struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, len(content), 0, 0, 8, 1, arch, 0, 0, 0x11, 0, 0) + content
    for arch, text in texts:
        content = text.encode() + b"\0" * (8 - len(text) % 8)
        packed, flag = _pack(content, compress)
        padded = packed + b"\0" * (-len(packed) % 8)
        size, compressed = (len(content), len(packed)) if flag else (0, 0)
        body += struct.pack(
            "<HHIQIIHHIIIQQQ", 1, 0x101, 64, len(padded), compressed, 0, 0, 9, arch, 0, 0, 0x11 | flag, 0, size
        )
        body += padded
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def _pack(content: bytes, compress: str) -> tuple[bytes, int]:
    if compress == "lz4":
        return lz4.block.compress(content, store_size=False), 0x2000
    if compress == "zstd":
        return zstd_frame(content), 0x8000
    return content, 0


def program(*fatbins: bytes, name: bytes = b".nv_fatbin") -> bytes:
    """A program or library for the host that has these fatbins, in sections of that name."""
    content, names = b"".join(fatbins), b"\0" + name + b"\0"
    begin = _ELF.size + 3 * _SECTION.size
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = _ELF.pack(ident, 3, 62, 1, 0, 0, _ELF.size, 0, 64, 0, 0, 64, 3, 2)
    table = bytes(_SECTION.size) + _SECTION.pack(1, 1, 0, 0, begin, len(content), 0, 0, 8, 0)
    table += _SECTION.pack(0, 3, 0, 0, begin + len(content), len(names), 0, 0, 1, 0)
    return header + table + content + names

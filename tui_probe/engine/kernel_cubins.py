"""The machine code of one kernel in what a program loaded: the cubin that the device ran, and the kernel's symbol."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImageError
from tui_probe.ptx import elf, fatbin
from tui_probe.ptx.images import container_of, image_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

_SYMBOL: Final = struct.Struct("<IBBHQQ")
_FUNCTION: Final = 2
_FAMILY: Final = 10
_FATBIN_SECTIONS: Final = (".nv_fatbin", "__nv_relfatbin")


def kernel_cubin(image: bytes, kernel: str, arch: int | None = None) -> tuple[bytes, int]:
    """The cubin in ``image`` that has ``kernel``, and the index of the kernel's symbol in it.

    With ``arch`` (90 for compute capability 9.0) that for the newest architecture that such a device runs, else the
    newest of all. Raises ImageError if there is none, or if the image is damaged.
    """
    if image_kind(image) == "elf" and (symbol := function_symbol(image, kernel)) is not None:
        return image, symbol
    found = list(_entries(image))
    fitting = [one for one in found if arch is None or (one.arch <= arch and one.arch // _FAMILY == arch // _FAMILY)]
    for entry in sorted(fitting, key=lambda one: one.arch, reverse=True):
        content = entry.content()
        if content.startswith(elf.MAGIC) and (symbol := function_symbol(content, kernel)) is not None:
            return content, symbol
    held = ", ".join(f"sm_{one}" for one in sorted({entry.arch for entry in found}))
    device = "" if arch is None else f" for sm_{arch}"
    raise ImageError(
        f"the image has no machine code of {kernel}{device}" + (f": it has some for {held}" if held else "")
    )


def function_symbol(cubin: bytes, name: str) -> int | None:
    """The index of the symbol of a function that ``cubin`` has the code of, None if it has none."""
    held = dict(elf.sections(cubin))
    symbols, names = held.get(".symtab", b""), held.get(".strtab", b"")
    wanted = name.encode() + b"\0"
    for index in range(len(symbols) // _SYMBOL.size):
        at, info, _, section, _, _ = _SYMBOL.unpack_from(symbols, index * _SYMBOL.size)
        if info & 0xF == _FUNCTION and section and names.startswith(wanted, at):
            return index
    return None


def _entries(image: bytes) -> Iterator[fatbin.Entry]:
    """The cubins of all containers, not yet decompressed."""
    kind = image_kind(image)
    containers: list[bytes] = []
    if kind == "elf":
        containers = [content for name, content in elf.sections(image) if name in _FATBIN_SECTIONS]
    elif kind != "ptx":
        containers = [container_of(image)]
    for container in containers:
        yield from (entry for entry in fatbin.entries(container) if entry.kind == fatbin.EntryKind.ELF)

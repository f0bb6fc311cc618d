"""The machine code in what programs load: the cubin of an image that a device runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ImageError
from tui_probe.ptx import elf, fatbin
from tui_probe.ptx.images import container_of, image_kind
from tui_probe.reasons import because
from tui_probe.sass.cubin import Cubin, is_cubin

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_FATBIN_SECTIONS: Final = (".nv_fatbin", "__nv_relfatbin")
_FAMILY: Final = 10


class _Found(NamedTuple):
    arch: int
    entry: fatbin.Entry | None
    image: bytes

    def content(self) -> bytes:
        """The cubin, decompressed. Raises ImageError."""
        return self.image if self.entry is None else self.entry.content()


def find_cubin(image: bytes, kernel: str, arch: int) -> tuple[Cubin, str]:
    """The cubin with ``kernel`` that a device of ``arch`` (90) runs, and how it was found.

    Of several that it could run, the driver takes that for the newest architecture. Raises ImageError.
    """
    fitting = [one for one in _cubins(image) if one.arch <= arch and one.arch // _FAMILY == arch // _FAMILY]
    for one in sorted(fitting, key=lambda each: each.arch, reverse=True):
        content = one.content()
        if not is_cubin(content):
            continue
        cubin = Cubin.read(content)
        if kernel in cubin.kernels:
            found = f"{image_kind(image)} of {len(image)} bytes: machine code for sm_{cubin.arch}, {len(content)} bytes"
            return cubin, found
    raise ImageError(because("no-machine-code", gpu=f"sm_{arch}"))


def kernels_in(image: bytes, arch: int | None = None) -> dict[str, int]:
    """The kernels that an image has machine code for, and the newest architecture of each; with ``arch`` (90), the
    newest that such a device runs. Raises ImageError.
    """
    found: dict[str, int] = {}
    for one in _cubins(image):
        if arch is not None and (one.arch > arch or one.arch // _FAMILY != arch // _FAMILY):
            continue
        content = one.content()
        for name in Cubin.read(content).kernels if is_cubin(content) else ():
            found[name] = max(found.get(name, 0), one.arch)
    return found


def cubins_in(image: bytes, architectures: Collection[int]) -> Iterator[bytes]:
    """The cubins of an image for these architectures (90), in order. Raises ImageError."""
    for one in _cubins(image):
        if one.arch in architectures and is_cubin(content := one.content()):
            yield content


def _cubins(image: bytes) -> Iterator[_Found]:
    """The cubins of an image, in order; those in a fatbin not yet decompressed."""
    kind = image_kind(image)
    if kind == "elf" and is_cubin(image):
        yield _Found(Cubin.read(image).arch, None, image)
    elif kind == "elf":
        for name, content in elf.sections(image):
            if name in _FATBIN_SECTIONS:
                yield from _of_fatbin(content)
    elif kind != "ptx":
        yield from _of_fatbin(container_of(image))


def _of_fatbin(container: bytes) -> Iterator[_Found]:
    for entry in fatbin.entries(container):
        if entry.kind == fatbin.EntryKind.ELF:
            yield _Found(entry.arch, entry, b"")

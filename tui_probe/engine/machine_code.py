"""The machine code in what programs load: the cubin of an image that a device runs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImageError
from tui_probe.ptx import elf, fatbin
from tui_probe.ptx.images import FATBIN_SECTIONS, container_of, image_kind
from tui_probe.reasons import because
from tui_probe.sass.cubin import Cubin, arch_of, is_cubin

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_ELF: Final = fatbin.EntryKind.ELF


def find_cubin(image: bytes, kernel: str, arch: int | None = None) -> tuple[Cubin, str]:
    """The cubin with ``kernel`` that a device of ``arch`` (90) runs, and how it was found; None: the newest of all.

    Of several that it could run, this is the one that the driver takes. Raises ImageError.
    """
    for one in _fitting(image, arch):
        cubin = _read(one)
        if cubin is not None and kernel in cubin.kernels:
            size = len(cubin.image)
            found = f"{image_kind(image)} of {len(image)} bytes: machine code for sm_{cubin.arch}, {size} bytes"
            return cubin, found
    if arch is None:
        raise ImageError(f"the image has no machine code of {kernel}")
    raise ImageError(because("no-machine-code", gpu=f"sm_{arch}"))


def kernels_in(image: bytes, arch: int | None = None) -> dict[str, int]:
    """The kernels that an image has machine code for, and the newest architecture of each; with ``arch`` (90), the
    newest that such a device runs. Raises ImageError.
    """
    found: dict[str, int] = {}
    for one in _fitting(image, arch):
        for name in kernels_of(one):
            found.setdefault(name, one.arch)
    return found


def fitting_cubins(entries: Iterable[fatbin.Entry], arch: int | None) -> list[fatbin.Entry]:
    """Of the entries of one image, the cubins that a device of ``arch`` (90) runs, or all, the one that the driver
    takes rather first.
    """
    fitting = [one for one in entries if one.kind == _ELF and (arch is None or one.runs_on(arch))]
    return sorted(fitting, key=lambda one: one.rank, reverse=True)


def kernels_of(entry: fatbin.Entry) -> tuple[str, ...]:
    """The names of the kernels in a cubin. Raises ImageError."""
    cubin = _read(entry)
    return cubin.kernels if cubin else ()


def entry_of_cubin(image: bytes) -> fatbin.Entry:
    """A cubin as if it lay in a fatbin."""
    return fatbin.Entry(_ELF, arch_of(image), 0, 0, image, 0, len(image))


def cubins_in(image: bytes, architectures: Collection[int]) -> Iterator[bytes]:
    """The cubins of an image for these architectures (90), in order. Raises ImageError."""
    for one in _entries(image):
        if one.kind == _ELF and one.arch in architectures and is_cubin(content := one.content()):
            yield content


def _read(entry: fatbin.Entry) -> Cubin | None:
    return _read_alone(entry.alone())


@lru_cache(maxsize=4)
def _read_alone(entry: fatbin.Entry) -> Cubin | None:
    """The cubin of an entry; the last few are remembered, since a program's kernels come from few that are large."""
    content = entry.content()
    return Cubin.read(content) if is_cubin(content) else None


def _fitting(image: bytes, arch: int | None) -> list[fatbin.Entry]:
    return fitting_cubins(_entries(image), arch)


def _entries(image: bytes) -> Iterator[fatbin.Entry]:
    """The entries of an image, in order, not yet decompressed."""
    kind = image_kind(image)
    if kind == "elf" and is_cubin(image):
        yield entry_of_cubin(image)
    elif kind == "elf":
        for name, place in elf.places(image):
            if name in FATBIN_SECTIONS:
                yield from fatbin.entries(image, place)
    elif kind != "ptx":
        yield from fatbin.entries(container_of(image))

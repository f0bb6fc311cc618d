"""The kernels of a file, and the way in which a run would probe each.

A library has one image or many: what the runtime gives to the driver at once. In each of them a kernel is probed in its
PTX, where the device can run that, or else in its machine code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui_probe.engine.machine_code import entry_of_cubin, fitting_cubins, kernels_of
from tui_probe.errors import ImageError
from tui_probe.input_limits import KERNEL_FILE
from tui_probe.ptx import elf, fatbin
from tui_probe.ptx.images import (
    FATBIN_SECTIONS,
    HeldPtx,
    PtxText,
    container_of,
    fitting_ptx,
    held_ptx,
    image_kind,
    ptx_of_entries,
    ptx_targets,
)
from tui_probe.sass.cubin import is_cubin
from tui_probe.trace.plain_file import read_plain, read_within

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path


_HEAD: Final = 1 << 20
Way: TypeAlias = Literal["ptx", "graft"]


@dataclass(frozen=True, slots=True)
class FoundKernel:
    """A kernel of a file for a device of ``arch`` (90). ``image`` counts the file's images from 1."""

    name: str
    way: Way
    arch: int
    image: int
    source: PtxText | fatbin.Entry

    @property
    def target(self) -> str:
        """What its PTX or its cubin is for: ``sm_90``."""
        return f"sm_{self.source.arch}"

    def content(self) -> bytes:
        """The PTX module or the cubin that it is in. Raises ImageError."""
        return self.source.text.encode() if isinstance(self.source, PtxText) else self.source.content()


@dataclass(frozen=True, slots=True)
class KernelImage:
    """One image of a file, nothing of it decompressed yet. ``number`` counts from 1."""

    number: int
    ptx: Sequence[HeldPtx]
    cubins: Sequence[fatbin.Entry]

    def newest(self, known: Collection[int]) -> int:
        """The newest architecture that it is for, of those ``known`` (90) if there is one; 0 if it has none.

        PTX for an architecture that is not known runs on later ones: then it is the oldest of these that is known.
        """
        held = {*ptx_targets(self.ptx), *(cubin.arch for cubin in self.cubins)}
        if held.intersection(known):
            return max(held.intersection(known))
        return next(filter(self.has_ptx_for, sorted(known)), max(held, default=0))

    def has_ptx_for(self, arch: int) -> bool:
        """Whether a device of ``arch`` (90) can run PTX of it. Raises ImageError."""
        return any(True for texts in fitting_ptx(self.ptx, arch) for _ in texts)

    def fits(self, arch: int) -> bool:
        """Whether a device of ``arch`` (90) can run anything of it, be there a kernel in that or not."""
        return bool(fitting_cubins(self.cubins, arch)) or self.has_ptx_for(arch)

    def kernels(self, arch: int) -> Iterator[FoundKernel]:
        """Its kernels for a device of ``arch`` (90), each by the way that a run takes. Raises ImageError."""
        seen: set[str] = set()
        for texts in fitting_ptx(self.ptx, arch):
            for text in sorted(texts, key=lambda text: text.arch, reverse=True):
                yield from (FoundKernel(name, "ptx", arch, self.number, text) for name in _new(text.entry_names, seen))
        for cubin in fitting_cubins(self.cubins, arch):
            yield from (FoundKernel(name, "graft", arch, self.number, cubin) for name in _new(kernels_of(cubin), seen))


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A file with kernels. ``kind`` is that of an event log, ``elf`` for executables and objects too."""

    path: Path
    kind: str
    size: int
    images: Sequence[KernelImage]

    def kernels(
        self, arch: int | None, known: Collection[int] = (), progress: Callable[[float], object] = lambda _: None
    ) -> Iterator[FoundKernel]:
        """Its kernels for a device of ``arch`` (90), each once; None: for the newest that the image of each has, of
        those ``known`` if there is one. Raises ImageError where something that the device would take is damaged.
        """
        seen: set[str] = set()
        for done, image in enumerate(self.images):
            progress(done / len(self.images))
            for kernel in image.kernels(image.newest(known) if arch is None else arch):
                if kernel.name not in seen:
                    seen.add(kernel.name)
                    yield kernel

    def held(self) -> str:
        """What it has, by the headers: ``PTX for sm_120, machine code for sm_80, sm_90``; "" for nothing."""
        ptx = {target for image in self.images for target in ptx_targets(image.ptx)}
        code = {cubin.arch for image in self.images for cubin in image.cubins}
        parts = [("PTX", ptx), ("machine code", code)]
        return ", ".join(
            f"{what} for {', '.join(f'sm_{arch}' for arch in sorted(have))}" for what, have in parts if have
        )


def _new(names: Iterable[str], seen: set[str]) -> Iterator[str]:
    """Those that were not seen before, which are seen from then on."""
    for name in names:
        if name not in seen:
            seen.add(name)
            yield name


def read_kernel_file(path: Path) -> KernelFile:
    """Read PTX, a cubin, a fatbin, an executable or an object. Raises ImageError where it is none of these."""
    try:
        data = _content(path)
        return KernelFile(path, image_kind(data), len(data), list(_images(data)))
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from error
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from error


def _content(path: Path) -> bytes:
    """All of a file. Raises OSError above the limit; ImageError for a large file of another kind."""
    size = path.stat().st_size
    if _HEAD < size <= KERNEL_FILE.most:
        image_kind(read_plain(path, _HEAD), size)
    return read_within(path, KERNEL_FILE)


def _images(data: bytes) -> Iterator[KernelImage]:
    kind = image_kind(data)
    if kind == "elf" and not is_cubin(data):
        yield from _of_program(data)
    elif kind in ("elf", "ptx"):
        yield KernelImage(1, held_ptx(data), [entry_of_cubin(data)] if kind == "elf" else [])
    else:
        yield _of_entries(1, list(fatbin.entries(container_of(data))))


def _of_program(data: bytes) -> Iterator[KernelImage]:
    """Those that are loaded or, in an object whose device code is still to be linked, what it has for that."""
    sections = {name: place for name, place in elf.places(data) if name in FATBIN_SECTIONS}
    for name in FATBIN_SECTIONS:
        if name in sections:
            for number, entries in enumerate(fatbin.containers(data, sections[name]), 1):
                yield _of_entries(number, entries)
            return


def _of_entries(number: int, entries: Sequence[fatbin.Entry]) -> KernelImage:
    cubins = [entry for entry in entries if entry.kind == fatbin.EntryKind.ELF]
    return KernelImage(number, ptx_of_entries(entries), cubins)

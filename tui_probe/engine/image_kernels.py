"""Find the kernels and cubins in an image or a file: PTX, cubin, fatbin, executable or object.

:func:`find_cubin` reads an image that a program loaded, :func:`read_kernel_file` and :func:`select_kernels` a file.

A library has one or many images, each loaded by one driver call. In each of them a kernel is probed in PTX mode if the
device can run the PTX, else in SASS mode.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tui_probe.binaries import elf, fatbin
from tui_probe.binaries.cubin import Cubin, is_cubin
from tui_probe.errors import ImageError, did_you_mean
from tui_probe.input_limits import KERNEL_FILE
from tui_probe.ptx.images import (
    FATBIN_SECTIONS,
    HeldPtx,
    PtxText,
    choose_ptx,
    cubin_with_ptx,
    entry_of_cubin,
    fatbin_container,
    fitting_ptx,
    held_ptx,
    image_entries,
    image_kind,
    ptx_of_entries,
    ptx_targets,
)
from tui_probe.reasons import because
from tui_probe.trace.locate import name_test
from tui_probe.trace.plain_file import read_plain, read_within

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.trace.launch_events import ProbeMode

_ELF: Final = fatbin.EntryKind.ELF
_NO_PTX_HINT: Final = "compile with PTX, e.g. with -gencode arch=compute_90,code=compute_90"
_ARGUMENT_LIST: Final = re.compile(r"[<(].*", re.DOTALL)
_MAX_SUGGESTIONS: Final = 3
_MAX_NAMES: Final = 5
_HEAD_BYTES: Final = 1 << 20
"""Beginning that shows the kind of a large file, before all of it is read."""


def find_cubin(image: bytes, kernel: str, arch: int | None = None) -> tuple[Cubin, str]:
    """Return the cubin with ``kernel`` that a device of ``arch`` (90; None: the newest of all) runs, and a description
    of where it was.

    Of several that the device could run, this is the one that the driver takes. Raises ImageError.
    """
    for entry in _image_cubins(image, arch):
        cubin = _read_elf_cubin(entry)
        if cubin is not None and kernel in cubin.kernels:
            size = len(cubin.image)
            description = f"{image_kind(image)} of {len(image)} bytes: SASS for sm_{cubin.arch}, {size} bytes"
            return cubin, description
    if arch is None:
        raise ImageError(f"the image has no SASS of {kernel}")
    raise ImageError(because("no-machine-code", gpu=f"sm_{arch}"))


def fitting_cubins(entries: Iterable[fatbin.FatbinEntry], arch: int | None) -> list[fatbin.FatbinEntry]:
    """Return the cubins of one image that a device of ``arch`` (90; None: any) can run, the driver's first choice
    first.
    """
    fitting = [entry for entry in entries if entry.kind == _ELF and (arch is None or entry.runs_on(arch))]
    return sorted(fitting, key=lambda entry: entry.rank, reverse=True)


@lru_cache(maxsize=2)
def _image_cubins(image: bytes, arch: int | None) -> list[fatbin.FatbinEntry]:
    """Return the cubins of an image for ``arch``, each copied out of it once: the last images are remembered."""
    return [entry.detached() for entry in fitting_cubins(image_entries(image), arch)]


def ptx_of_kernel(
    ptx_texts: Sequence[HeldPtx], cubins: Sequence[fatbin.FatbinEntry], kernel: str, arch: int
) -> PtxText:
    """Return the PTX from which the kernel that a device of ``arch`` (90) runs was compiled.

    ``cubins`` are the cubins that it can run, as ``fitting_cubins`` gives them. Raises ImageError if there is none.
    """
    text = choose_ptx(ptx_texts, kernel, arch, cubins[0] if cubins else None)
    if cubins and not text.is_source_of(cubins[0]):
        loaded_cubin = next((entry for entry in cubins if kernel in kernels_of(entry)), None)
        if loaded_cubin is not None and not text.is_source_of(loaded_cubin):
            raise ImageError(because("ptx-of-other-code"))
    return text


def kernels_of(entry: fatbin.FatbinEntry) -> tuple[str, ...]:
    """Return the names of the kernels in a cubin. Raises ImageError."""
    cubin = _read_cubin(entry)
    return cubin.kernels if cubin else ()


def _read_cubin(entry: fatbin.FatbinEntry) -> Cubin | None:
    return _read_elf_cubin(entry.detached())


@lru_cache(maxsize=4)
def _read_elf_cubin(entry: fatbin.FatbinEntry) -> Cubin | None:
    """Return the cubin of an entry; the last few are remembered, since a program's kernels come from few that are
    large.
    """
    content = entry.content()
    return Cubin.read(content) if is_cubin(content) else None


@dataclass(frozen=True, slots=True)
class FileKernel:
    """A kernel of a file for a device of ``arch`` (90). ``image`` counts the file's images from 1.

    ``cubins`` are those of its image that such a device runs, the one that the driver takes first.
    """

    name: str
    mode: ProbeMode
    arch: int
    image: int
    source: PtxText | fatbin.FatbinEntry
    cubins: Sequence[fatbin.FatbinEntry] = ()

    @property
    def target(self) -> str:
        """Architecture of its PTX or cubin: ``sm_90``."""
        return f"sm_{self.source.arch}"

    def content(self) -> bytes:
        """Return the PTX module that it is in, or the cubin that has its PTX or SASS. Raises ImageError."""
        if not isinstance(self.source, PtxText):
            return self.source.content()
        cubin = cubin_with_ptx(self.cubins, self.source.text) if self.source.in_cubin else b""
        return cubin or self.source.text.encode()

    def sass_cubin(self) -> Cubin | None:
        """Return the cubin that a device runs without a probe; None if it compiles the PTX. Raises ImageError."""
        entry = self._entry()
        return _read_cubin(entry) if entry else None

    def in_sass_mode(self) -> FileKernel:
        """Return the same kernel to be probed in SASS mode, unchanged if it has no SASS. Raises ImageError."""
        entry = self._entry()
        return replace(self, mode="graft", source=entry) if entry else self

    def _entry(self) -> fatbin.FatbinEntry | None:
        return next((entry for entry in self.cubins if self.name in kernels_of(entry)), None)


@dataclass(frozen=True, slots=True)
class KernelImage:
    """One image of a file, nothing of it decompressed yet. ``number`` counts from 1."""

    number: int
    ptx: Sequence[HeldPtx]
    cubins: Sequence[fatbin.FatbinEntry]

    def newest_arch(self, known_archs: Collection[int], *, in_sass: bool = False) -> int:
        """Return the newest architecture that it is for, of those ``known_archs`` (90) if there is one; 0 if it has
        none.

        PTX for an architecture that is not known runs on later ones: then it is the oldest of these that is known.
        With ``in_sass`` it is the newest of its SASS, if there is some.
        """
        if in_sass and self.cubins:
            return max(cubin.arch for cubin in self.cubins)
        archs = {*ptx_targets(self.ptx), *(cubin.arch for cubin in self.cubins)}
        if archs.intersection(known_archs):
            return max(archs.intersection(known_archs))
        return next(filter(self.has_ptx_for, sorted(known_archs)), max(archs, default=0))

    def has_ptx_for(self, arch: int) -> bool:
        """Return whether a device of ``arch`` (90) can run PTX of it. Raises ImageError."""
        return any(True for texts in fitting_ptx(self.ptx, arch) for _ in texts)

    def fits(self, arch: int) -> bool:
        """Return whether a device of ``arch`` (90) can run PTX or SASS of it, with or without kernels."""
        return bool(fitting_cubins(self.cubins, arch)) or self.has_ptx_for(arch)

    def kernels(self, arch: int) -> Iterator[FileKernel]:
        """Yield its kernels for a device of ``arch`` (90), in the mode that a run would use. Raises ImageError."""
        seen: set[str] = set()
        cubins = fitting_cubins(self.cubins, arch)
        for texts in fitting_ptx(self.ptx, arch):
            for text in sorted(texts, key=lambda text: text.rank, reverse=True):
                names = _add_unseen(self._compiled_from(text, cubins), seen)
                yield from (FileKernel(name, "ptx", arch, self.number, text, cubins) for name in names)
        for cubin in cubins:
            names = _add_unseen(kernels_of(cubin), seen)
            yield from (FileKernel(name, "graft", arch, self.number, cubin, cubins) for name in names)

    @staticmethod
    def _compiled_from(text: PtxText, cubins: Sequence[fatbin.FatbinEntry]) -> Iterator[str]:
        """Yield the kernels of PTX, without those that a device runs from SASS for another target."""
        other_cubins = () if not cubins or text.is_source_of(cubins[0]) else cubins
        excluded_names = {name for entry in other_cubins if not text.is_source_of(entry) for name in kernels_of(entry)}
        return (name for name in text.entry_names if name not in excluded_names)


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A file with kernels. ``kind`` is that of an event log, ``elf`` for executables and objects too."""

    path: Path
    kind: str
    size: int
    images: Sequence[KernelImage]

    def kernels(
        self,
        arch: int | None,
        known_archs: Collection[int] = (),
        progress: Callable[[float], object] = lambda _: None,
        *,
        in_sass: bool = False,
    ) -> Iterator[FileKernel]:
        """Yield its kernels for a device of ``arch`` (90), each once. Raises ImageError if needed data is damaged.

        Without ``arch``, each image is read for its newest architecture, of those in ``known_archs`` if there is one,
        or with ``in_sass`` for the newest of its SASS.
        """
        seen: set[str] = set()
        for index, image in enumerate(self.images):
            progress(index / len(self.images))
            for kernel in image.kernels(image.newest_arch(known_archs, in_sass=in_sass) if arch is None else arch):
                if kernel.name not in seen:
                    seen.add(kernel.name)
                    yield kernel

    def content_summary(self) -> str:
        """Describe the content by the headers: ``PTX for sm_120, SASS for sm_80, sm_90``; "" for nothing."""
        ptx_archs = {target for image in self.images for target in ptx_targets(image.ptx)}
        sass_archs = {cubin.arch for image in self.images for cubin in image.cubins}
        parts = [("PTX", ptx_archs), ("SASS", sass_archs)]
        return ", ".join(
            f"{kind} for {', '.join(f'sm_{arch}' for arch in sorted(archs))}" for kind, archs in parts if archs
        )


def _add_unseen(names: Iterable[str], seen: set[str]) -> Iterator[str]:
    """Yield the names not in ``seen``, and add them to it."""
    for name in names:
        if name not in seen:
            seen.add(name)
            yield name


def read_kernel_file(path: Path) -> KernelFile:
    """Read PTX, a cubin, a fatbin, an executable or an object. Raises ImageError where it is none of these."""
    try:
        data = _read_content(path)
        return KernelFile(path, image_kind(data), len(data), list(_kernel_images(data)))
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from error
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from error


def _read_content(path: Path) -> bytes:
    """Return the bytes of a file. Raises OSError above the limit; ImageError for a large file of another kind."""
    size = path.stat().st_size
    if _HEAD_BYTES < size <= KERNEL_FILE.maximum:
        image_kind(read_plain(path, _HEAD_BYTES), size)
    return read_within(path, KERNEL_FILE)


def _kernel_images(data: bytes) -> Iterator[KernelImage]:
    kind = image_kind(data)
    if kind == "elf" and not is_cubin(data):
        yield from _program_images(data)
    elif kind in ("elf", "ptx"):
        yield KernelImage(1, held_ptx(data), [entry_of_cubin(data)] if kind == "elf" else [])
    else:
        yield _entries_image(1, list(fatbin.fatbin_entries(fatbin_container(data))))


def _program_images(data: bytes) -> Iterator[KernelImage]:
    """Yield the images that are loaded or, in an object not yet device-linked, those for the linker."""
    sections = {name: place for name, place in elf.section_slices(data) if name in FATBIN_SECTIONS}
    for name in FATBIN_SECTIONS:
        if name in sections:
            for number, entries in enumerate(fatbin.container_entries(data, sections[name]), 1):
                yield _entries_image(number, entries)
            return


def _entries_image(number: int, entries: Sequence[fatbin.FatbinEntry]) -> KernelImage:
    cubins = [entry for entry in entries if entry.kind == _ELF]
    return KernelImage(number, ptx_of_entries(entries), cubins)


def select_kernels(
    file: KernelFile,
    patterns: Sequence[str],
    arch: int | None,
    known_archs: Collection[int],
    progress: Callable[[float], object] = lambda _: None,
    *,
    in_sass: bool = False,
) -> list[FileKernel]:
    """Return the kernels of a file that ``patterns`` name, or all; ``arch``, ``known_archs``, ``in_sass`` as for
    ``KernelFile.kernels``.

    If all patterns are exact names, the file is read no further than needed. Raises ImageError if nothing matches,
    or if the file has no kernel that such a device runs.
    """
    kernels: list[FileKernel] = []
    missing_patterns = set(patterns)
    try:
        for kernel in file.kernels(arch, known_archs, progress, in_sass=in_sass):
            kernels.append(kernel)
            missing_patterns -= _spellings(kernel) if patterns else set()
            if patterns and not missing_patterns:
                break
    except ImageError as error:
        raise ImageError(f"{file.path}: {error}") from error
    if not kernels:
        raise ImageError(f"{file.path}: {_no_kernel_reason(file, arch)}")
    return _select_by_patterns(file, kernels, patterns, arch) if patterns else kernels


def _select_by_patterns(
    file: KernelFile, kernels: Sequence[FileKernel], patterns: Iterable[str], arch: int | None
) -> list[FileKernel]:
    matches = [kernel for pattern in patterns for kernel in _select_by_pattern(file, kernels, pattern, arch)]
    return list({kernel.name: kernel for kernel in matches}.values())


def _select_by_pattern(
    file: KernelFile, kernels: Sequence[FileKernel], pattern: str, arch: int | None
) -> list[FileKernel]:
    """Return the kernels that a pattern selects. Raises ImageError if nothing matches."""
    exact_matches = [kernel for kernel in kernels if pattern in _spellings(kernel)]
    if exact_matches:
        return exact_matches
    has_match = name_test(pattern)
    if partial_matches := [kernel for kernel in kernels if any(map(has_match, _spellings(kernel)))]:
        return partial_matches
    gpu = f" for sm_{arch}" if arch else ""
    hint = _name_hint(kernels, pattern)
    raise ImageError(f"{file.path}: no kernel {pattern}{gpu} among the {len(kernels)} kernels in the file{hint}")


def _name_hint(kernels: Sequence[FileKernel], pattern: str) -> str:
    """Return similar names as a hint, or all names if there are few."""
    suggestion = did_you_mean(
        pattern, dict.fromkeys(name for kernel in kernels for name in _short_names(kernel)), _MAX_SUGGESTIONS
    )
    lists_all = len(kernels) <= _MAX_NAMES
    return suggestion or (
        f"; there are {', '.join(next(_short_names(kernel)) for kernel in kernels)}" if lists_all else ""
    )


def _spellings(kernel: FileKernel) -> set[str]:
    from tui_probe.trace.kernel_status import demangle  # kernels are prepared without it

    return {kernel.name, demangle(kernel.name)}


def _short_names(kernel: FileKernel) -> Iterator[str]:
    """Yield names that a user would type: the name without types first, then that of the compiler."""
    from tui_probe.trace.kernel_status import demangle

    readable = demangle(kernel.name)
    if readable != kernel.name:
        yield _ARGUMENT_LIST.sub("", readable).rpartition(" ")[2]
    yield kernel.name


def _no_kernel_reason(file: KernelFile, arch: int | None) -> str:
    """Return why a file has no kernel."""
    content = file.content_summary()
    if not content:
        return f"the file has neither PTX nor SASS of a kernel; {_NO_PTX_HINT}"
    if arch and not any(image.fits(arch) for image in file.images):
        return f"the file has no kernel for sm_{arch}; it has {content}"
    return f"the file has {content}, but this code contains no kernel"

"""Find PTX in what programs load: PTX text, cubins, fatbins, executables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui_probe.binaries import elf, fatbin
from tui_probe.binaries.cubin import arch_of, is_cubin
from tui_probe.errors import ImageError
from tui_probe.ptx.lexer import is_ptx, kernel_names, ptx_target
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ImageKind: TypeAlias = Literal["elf", "fatbin", "warpped_fatbin", "ptx"]
"""Kind of an image, spelled as ``[bin] type`` of an event log spells it."""

_WRAPPER_MAGIC: Final = 0x466243B1.to_bytes(4, "little")
"""First bytes of ``__fatBinC_Wrapper_t``, which the runtime gives to the driver: it holds the address of a fatbin."""
_WRAPPER_SIZE: Final = 24
_PTX_SECTION: Final = re.compile(r"\.nv_debug_ptx_txt(?:\..+)?")
"""A cubin that was linked from several has a section for each of them, with a number behind a dot."""
FATBIN_SECTIONS: Final = (".nv_fatbin", "__nv_relfatbin")
"""Sections of programs and objects: fatbins as they are loaded, and those that are still to be linked."""


@dataclass(frozen=True)
class PtxText:
    """One PTX module out of an image. ``arch`` is 90 for ``.target sm_90a``. ``in_cubin``: a cubin keeps it for
    debuggers, without ``.loc``.
    """

    arch: int
    text: str
    in_cubin: bool = False

    @cached_property
    def entry_names(self) -> dict[str, None]:
        """The names of its kernels, in order."""
        return kernel_names(self.text)

    @property
    def rank(self) -> tuple[int, bool, bool]:
        """The larger, the rather the driver takes it, as ``FatbinEntry.rank``."""
        target = ptx_target(self.text)
        suffix = target.suffix if target else ""
        return self.arch, suffix == "a", suffix == "f"

    def is_source_of(self, code: fatbin.FatbinEntry) -> bool:
        """Return whether it was compiled for the same target as SASS of the same image.

        If not, the two may be different code: a compiler for sm_90a sees the branches of ``__CUDA_ARCH_FEAT_SM90_ALL``,
        one for sm_90 does not, and CUTLASS then has kernels that only print an error.
        """
        return self.in_cubin or ptx_target(self.text) == (code.arch, code.suffix)

    def runs_on(self, arch: int) -> bool:
        """Return whether a device of compute capability ``arch`` (90 for 9.0) can run it.

        A target runs on its own and on later devices; ``sm_90a`` on 9.0 only, ``sm_100f`` on its family.
        PTX ISA reference, ``.target``.
        """
        target = ptx_target(self.text)
        if target and target.suffix == "a":
            return self.arch == arch
        if target and target.suffix == "f":
            return self.arch <= arch and self.arch // 10 == arch // 10
        return self.arch <= arch


@dataclass(frozen=True)
class HeldPtx:
    """PTX in an image, which is decompressed when its text is asked for. ``arch`` (90) is what its header tells.

    ``entry`` is where a fatbin has it, as PTX or within a cubin; None: it is there as text, which is then known.
    """

    arch: int
    entry: fatbin.FatbinEntry | None
    known_texts: tuple[PtxText, ...] = ()

    @cached_property
    def texts(self) -> tuple[PtxText, ...]:
        """Return its modules: none if there is no PTX, several in a cubin that was linked. Raises ImageError."""
        if self.entry is None:
            return self.known_texts
        content = self.entry.content()
        if self.entry.kind == fatbin.EntryKind.PTX:
            return _texts([_text(content)])
        # A cubin, which has no fatbins in it.
        return _texts(_cubin_ptx_texts(content), in_cubin=True) if content.startswith(elf.MAGIC) else ()

    def may_run_on(self, arch: int | None) -> bool:
        """Return whether a device of ``arch`` (90) can run it, to the extent that its header tells; None: any
        device.
        """
        if arch is None or self.entry is None:
            return True
        return self.arch <= arch if self.entry.kind == fatbin.EntryKind.PTX else self.entry.runs_on(arch)

    def targets(self) -> list[int]:
        """Architecture, if known without decompressing it."""
        if self.entry is None or "texts" in self.__dict__:
            return [text.arch for text in self.texts]
        return [self.arch] if self.entry.kind == fatbin.EntryKind.PTX else []


def image_kind(image: bytes, size: int | None = None) -> ImageKind:
    """Return the kind of ``image``, or of an image of ``size`` bytes that begins so. Raises ImageError for anything
    else.
    """
    if image.startswith(elf.MAGIC):
        return "elf"
    if image.startswith(fatbin.FATBIN_MAGIC):
        return "fatbin"
    if image.startswith(_WRAPPER_MAGIC):
        return "warpped_fatbin"
    if is_ptx(_text(image)):
        return "ptx"
    start = image[:8].hex(" ") or "nothing"
    raise ImageError(f"the image ({size or len(image)} bytes, starting with {start}) is not a cubin, fatbin or PTX")


def held_ptx(image: bytes) -> list[HeldPtx]:
    """Return all PTX in ``image``, in order, not yet decompressed. Raises ImageError for what is not an image or is
    damaged.
    """
    match image_kind(image):
        case "ptx":
            return [_uncompressed_ptx(_text(image))]
        case "fatbin" | "warpped_fatbin":
            return ptx_of_entries(fatbin.fatbin_entries(fatbin_container(image)))
        case "elf":
            return list(_elf_ptx(image))


def ptx_texts(image: bytes) -> list[PtxText]:
    """Return all PTX modules in ``image``, in order; none if it holds only machine code. Raises ImageError."""
    return [text for stored in held_ptx(image) for text in stored.texts]


def image_entries(image: bytes) -> Iterator[fatbin.FatbinEntry]:
    """Yield the entries of an image, in order, not yet decompressed. Raises ImageError."""
    kind = image_kind(image)
    if kind == "elf" and is_cubin(image):
        yield entry_of_cubin(image)
    elif kind == "elf":
        for name, place in elf.section_slices(image):
            if name in FATBIN_SECTIONS:
                yield from fatbin.fatbin_entries(image, place)
    elif kind != "ptx":
        yield from fatbin.fatbin_entries(fatbin_container(image))


def entry_of_cubin(image: bytes) -> fatbin.FatbinEntry:
    """Return a cubin as if it lay in a fatbin."""
    return fatbin.FatbinEntry(fatbin.EntryKind.ELF, arch_of(image), 0, 0, image, 0, len(image))


def cubin_with_ptx(entries: Iterable[fatbin.FatbinEntry], ptx: str) -> bytes:
    """Return the cubin whose debug section has this PTX; b"" for none, and if an entry is PTX, which is used instead.

    The line tables of the cubin have the source lines, which the PTX in it lacks. Raises ImageError.
    """
    arch, entry_list = _arch(ptx), list(entries)
    if any(entry.kind == fatbin.EntryKind.PTX for entry in entry_list):
        return b""
    for entry in entry_list:
        if entry.kind == fatbin.EntryKind.ELF and entry.arch == arch:
            cubin = entry.content()
            if cubin.startswith(elf.MAGIC) and ptx in _cubin_ptx_texts(cubin):
                return cubin
    return b""


def find_ptx(image: bytes, entry: str | None = None, arch: int | None = None) -> str:
    """Return the PTX in ``image`` that has the kernel ``entry``, for the newest architecture.

    With ``arch`` (90 for compute capability 9.0), the newest that such a device can run.
    Raises ImageError, which says what is missing.
    """
    return choose_ptx(held_ptx(image), entry, arch).text


def choose_ptx(
    candidates: Sequence[HeldPtx],
    entry: str | None = None,
    arch: int | None = None,
    code: fatbin.FatbinEntry | None = None,
) -> PtxText:
    """Return the PTX of one image that ``find_ptx`` would find; what is older or cannot run is not decompressed.

    With ``code``, the SASS that the device runs, PTX for its target comes first. Raises ImageError, which says what is
    missing.
    """
    other_texts: list[PtxText] = []
    matching: list[PtxText] = []
    for texts in fitting_ptx(candidates, arch):
        matching += (text for text in texts if entry is None or entry in text.entry_names)
        if code is None and matching:
            break
        other_texts += texts
    if matching:
        return max(matching, key=lambda text: (code is not None and text.is_source_of(code), *text.rank))
    if entry is not None and other_texts:
        from difflib import get_close_matches  # most kernels are found

        available_names = sorted({name for text in other_texts for name in text.entry_names})
        similar_names = ", ".join(get_close_matches(entry, available_names, 3) or available_names[:3]) or "none"
        raise ImageError(because("no-ptx-for-kernel", kernel=entry, others=similar_names))
    if targets := ptx_targets(candidates):
        target_names = ", ".join(f"sm_{target}" for target in targets)
        raise ImageError(because("ptx-for-other-gpu", targets=target_names, gpu=f"sm_{arch}"))
    raise ImageError(because("no-ptx"))


def fitting_ptx(candidates: Iterable[HeldPtx], arch: int | None = None) -> Iterator[list[PtxText]]:
    """Yield the PTX that a device of ``arch`` (90) can run, the newest first by its headers; None: all of it.

    Raises ImageError for what cannot be decompressed.
    """
    fitting = sorted((ptx for ptx in candidates if ptx.may_run_on(arch)), key=lambda ptx: ptx.arch, reverse=True)
    for _, same_arch in groupby(fitting, key=lambda ptx: ptx.arch):
        yield [text for ptx in same_arch for text in ptx.texts if arch is None or text.runs_on(arch)]


def ptx_targets(candidates: Iterable[HeldPtx]) -> list[int]:
    """Return the architectures that the PTX of an image is for, if known without decompressing it."""
    return sorted({target for ptx in candidates for target in ptx.targets()})


def ptx_of_entries(entries: Iterable[fatbin.FatbinEntry]) -> list[HeldPtx]:
    """Return the PTX of a fatbin: its PTX entries or, where it has none, what its cubins keep."""
    ptx_by_kind: dict[int, list[HeldPtx]] = {}
    for entry in entries:
        ptx_by_kind.setdefault(entry.kind, []).append(HeldPtx(entry.arch, entry))
    return ptx_by_kind.get(fatbin.EntryKind.PTX) or ptx_by_kind.get(fatbin.EntryKind.ELF, [])


def _elf_ptx(image: bytes) -> Iterator[HeldPtx]:
    for name, place in elf.wanted_section_slices(
        image, lambda name: name in FATBIN_SECTIONS or _PTX_SECTION.fullmatch(name)
    ):
        if name not in FATBIN_SECTIONS:
            yield _uncompressed_ptx(_section_ptx(image[place]), in_cubin=True)
        else:
            yield from ptx_of_entries(fatbin.fatbin_entries(image, place))


def _uncompressed_ptx(text: str, *, in_cubin: bool = False) -> HeldPtx:
    texts = _texts([text], in_cubin=in_cubin)
    return HeldPtx(max((ptx.arch for ptx in texts), default=0), None, texts)


def _cubin_ptx_texts(cubin: bytes) -> Iterator[str]:
    return (_section_ptx(cubin[place]) for _, place in elf.wanted_section_slices(cubin, _PTX_SECTION.fullmatch))


def _section_ptx(content: bytes) -> str:
    return content.rstrip(b"\0").replace(b"\0", b"\n").decode("utf-8", "replace") + "\n"


def _texts(texts: Iterable[str], *, in_cubin: bool = False) -> tuple[PtxText, ...]:
    return tuple(PtxText(_arch(text), text, in_cubin) for text in texts if is_ptx(text))


def fatbin_container(image: bytes) -> bytes:
    """Return the fatbin containers of an image that is a fatbin, with a wrapper or without. Raises ImageError."""
    return image if image.startswith(fatbin.FATBIN_MAGIC) else _unwrap(image)


def _unwrap(image: bytes) -> bytes:
    """Return the container behind a wrapper that was saved together with it."""
    container = image[_WRAPPER_SIZE:]
    if not container.startswith(fatbin.FATBIN_MAGIC):
        raise ImageError(
            "the image is a fatbin wrapper, which contains only an address: save the fatbin at that address"
        )
    return container


def _text(image: bytes) -> str:
    """PTX as the driver takes it: a C string. Bytes that are not UTF-8 (in paths) are replaced."""
    return image.partition(b"\0")[0].decode("utf-8", "replace")


def _arch(text: str) -> int:
    target = ptx_target(text)
    return target.arch if target else 0

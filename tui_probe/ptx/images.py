"""PTX inside what programs load: PTX text, cubins, fatbins, executables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui_probe.errors import ImageError
from tui_probe.ptx import elf, fatbin
from tui_probe.ptx.lexer import NAME, TRIVIA
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterator

ImageKind: TypeAlias = Literal["elf", "fatbin", "warpped_fatbin", "ptx"]
"""As ``[bin] type`` of an event log tells it; the spelling is that of the format."""

_WRAPPER_MAGIC: Final = 0x466243B1.to_bytes(4, "little")
_WRAPPER_SIZE: Final = 24
_PTX_SECTION: Final = re.compile(r"\.nv_debug_ptx_txt(?:\..+)?")
"""A cubin that was linked from several has a section for each of them, with a number behind a dot."""
_FATBIN_SECTIONS: Final = (".nv_fatbin", "__nv_relfatbin")
_PTX_START: Final = re.compile(rf"{TRIVIA}\.version(?![A-Za-z0-9_$])")
_TARGET: Final = re.compile(r"\.target\s+sm_([0-9]+)([a-z]?)")
_ENTRY: Final = re.compile(rf"\.entry{TRIVIA}({NAME})")


@dataclass(frozen=True, slots=True)
class PtxText:
    """One PTX module out of an image. ``arch`` is 90 for ``.target sm_90a``."""

    arch: int
    text: str

    def entry_names(self) -> list[str]:
        """The names of its kernels, in order."""
        return _ENTRY.findall(self.text)

    def runs_on(self, arch: int) -> bool:
        """Tell whether a device of compute capability ``arch`` (90 for 9.0) can run it.

        A target runs on its own and on later devices; ``sm_90a`` on 9.0 alone, ``sm_100f`` on its family.
        PTX ISA reference, ``.target``.
        """
        match = _TARGET.search(self.text)
        suffix = match[2] if match else ""
        if suffix == "a":
            return self.arch == arch
        if suffix == "f":
            return self.arch <= arch and self.arch // 10 == arch // 10
        return self.arch <= arch


def image_kind(image: bytes) -> ImageKind:
    """What ``image`` is. Raises ImageError for anything else."""
    if image.startswith(elf.MAGIC):
        return "elf"
    if image.startswith(fatbin.MAGIC):
        return "fatbin"
    if image.startswith(_WRAPPER_MAGIC):
        return "warpped_fatbin"
    if _PTX_START.match(_text(image)):
        return "ptx"
    raise ImageError(
        f"the image ({len(image)} bytes, starting with {image[:8].hex(' ') or 'nothing'}) is no cubin, fatbin or PTX"
    )


def ptx_texts(image: bytes) -> list[PtxText]:
    """All PTX modules in ``image``, in order; none if it holds machine code alone. Raises ImageError."""
    match image_kind(image):
        case "ptx":
            texts = [_text(image)]
        case "fatbin":
            texts = list(_of_fatbin(image))
        case "warpped_fatbin":
            texts = list(_of_fatbin(_unwrap(image)))
        case "elf":
            texts = list(_of_elf(image))
    return [PtxText(_arch(text), text) for text in texts if _PTX_START.match(text)]


def find_ptx(image: bytes, entry: str | None = None, arch: int | None = None) -> str:
    """The PTX in ``image`` that has the kernel ``entry``, for the newest architecture.

    With ``arch`` (90 for compute capability 9.0), the newest that such a device can run.
    Raises ImageError, which says what is missing.
    """
    return choose_ptx(ptx_texts(image), entry, arch).text


def choose_ptx(texts: list[PtxText], entry: str | None = None, arch: int | None = None) -> PtxText:
    """Of the PTX of one image, what ``find_ptx`` finds. Raises ImageError, which says what is missing."""
    if not texts:
        raise ImageError(because("no-ptx"))
    if entry is not None:
        texts = _having(texts, entry)
    fitting = [text for text in texts if arch is None or text.runs_on(arch)]
    if not fitting:
        held = ", ".join(sorted({f"sm_{text.arch}" for text in texts}))
        raise ImageError(because("ptx-for-other-gpu", targets=held, gpu=f"sm_{arch}"))
    return max(fitting, key=lambda text: text.arch)


def _having(texts: list[PtxText], entry: str) -> list[PtxText]:
    names = [text.entry_names() for text in texts]
    having = [text for text, held in zip(texts, names, strict=True) if entry in held]
    if not having:
        known = sorted({name for held in names for name in held})
        near = ", ".join(get_close_matches(entry, known, 3) or known[:3]) or "none"
        raise ImageError(because("no-ptx-for-kernel", kernel=entry, others=near))
    return having


def _of_fatbin(image: bytes) -> Iterator[str]:
    """PTX entries or, where a fatbin has none, the PTX that its cubins keep."""
    entries = list(fatbin.entries(image))
    ptx = [entry for entry in entries if entry.kind == fatbin.EntryKind.PTX]
    if ptx:
        yield from (_text(entry.content()) for entry in ptx)
        return
    for entry in entries:
        if entry.kind == fatbin.EntryKind.ELF:
            content = entry.content()
            if content.startswith(elf.MAGIC):
                yield from _of_elf(content, host=False)  # a cubin, which has no fatbins in it


def _of_elf(image: bytes, *, host: bool = True) -> Iterator[str]:
    for name, content in elf.sections(image):
        if _PTX_SECTION.fullmatch(name):
            yield content.rstrip(b"\0").replace(b"\0", b"\n").decode("utf-8", "replace") + "\n"
        elif host and name in _FATBIN_SECTIONS:
            yield from _of_fatbin(content)


def container_of(image: bytes) -> bytes:
    """The fatbin containers of an image that is a fatbin, with a wrapper or without. Raises ImageError."""
    return image if image.startswith(fatbin.MAGIC) else _unwrap(image)


def _unwrap(image: bytes) -> bytes:
    """The container behind a wrapper that was saved together with it."""
    container = image[_WRAPPER_SIZE:]
    if not container.startswith(fatbin.MAGIC):
        raise ImageError("the image is a fatbin wrapper, an address only: save the container that it points to")
    return container


def _text(image: bytes) -> str:
    """PTX as the driver takes it: a C string. Bytes that are not UTF-8 (in paths) are replaced."""
    return image.partition(b"\0")[0].decode("utf-8", "replace")


def _arch(text: str) -> int:
    match = _TARGET.search(text)
    return int(match[1]) if match else 0

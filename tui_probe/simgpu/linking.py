"""The PTX of an image; and several images become one, as a linker makes one program of machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImageError, PtxError
from tui_probe.ptx import elf
from tui_probe.ptx.images import find_ptx, ptx_texts
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Directive, Function, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.ptx.tree import Module, TopLevel

ARCHIVE: Final = b"!<arch>\n"
"""How a library of objects begins. The runtime's device libraries hold machine code alone, and what programs use of
them here is none of it."""


_ALONE: Final = (
    "the simulated GPU executes PTX alone. Load PTX as it is (nvcc -ptx, NVRTC's PTX), and link it with cuLinkAddData"
    " instead of nvJitLink"
)


def ptx_of(image: bytes, compute_capability: int) -> str:
    """The PTX of an image for a GPU of a compute capability, 80 for sm_80. Raises ImageError where there is none.

    Of a cubin that was linked from several, the PTX of all of them.
    """
    if image.startswith(elf.MAGIC) and len(texts := ptx_texts(image)) > 1:
        return _linked([parse(text.text) for text in texts])
    try:
        return find_ptx(image, arch=compute_capability)
    except ImageError as error:
        if error.reason.code != "no-ptx":
            raise
        raise ImageError(f"{error}: {_ALONE}") from None


def link(images: Sequence[bytes], compute_capability: int) -> bytes:
    """The PTX of all images, for a GPU of a compute capability (80 for sm_80), as text that ends with a NUL.

    Raises ImageError for an image without PTX for this GPU, PtxError where two define one name.
    """
    modules = [parse(ptx_of(image, compute_capability)) for image in images if not image.startswith(ARCHIVE)]
    if not modules:
        raise PtxError("nothing to link: no image with PTX was added")
    return _linked(modules).encode() + b"\0"


def _linked(modules: Sequence[Module]) -> str:
    newest = max(modules, key=lambda module: module.version)
    head = f".version {newest.version[0]}.{newest.version[1]}\n.target {newest.target}\n.address_size 64\n"
    return "\n".join([head, *_items(modules), ""])


def _items(modules: Sequence[Module]) -> Iterator[str]:
    """The text of each function and variable, once, definitions in the place of declarations."""
    defined: dict[str, str] = {}
    for module in modules:
        for item in module.items:
            if _is_definition(item) and _name(item) in defined and item.linkage == "visible":  # type: ignore[union-attr]
                raise PtxError(f"{_name(item)} is defined in two of the linked images")
            if _is_definition(item):
                defined.setdefault(_name(item), _text(module, item))
    given = set()
    for module in modules:
        for item in module.items:
            name = _name(item)
            if isinstance(item, Directive) and item.name == "alias":
                yield item.text
            if isinstance(item, Directive) or (name in defined and name in given):
                continue
            if name in defined and not _is_definition(item):
                continue
            given.add(name)
            yield _text(module, item)


def _is_definition(item: TopLevel) -> bool:
    if isinstance(item, Function):
        return item.body is not None
    return isinstance(item, Variable) and item.linkage != "extern"


def _name(item: TopLevel) -> str:
    return item.name if isinstance(item, (Function, Variable)) else ""


def _text(module: Module, item: TopLevel) -> str:
    return module.source[item.span.start : item.span.end]

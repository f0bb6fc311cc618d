"""The PTX corpus, and what several tests need to compare trees."""

from __future__ import annotations

import lzma
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_probe.ptx.operands import tokens
from tui_probe.ptx.tree import Instruction, Module, Scope, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.ptx.tree import Statement

DATA = Path(__file__).parent.parent / "data" / "ptx"


@dataclass(frozen=True, order=True)
class CorpusFile:
    """PTX of the corpus, as it is or packed by xz. ``name`` is without the ending of the packing."""

    name: str
    path: Path

    def read_text(self) -> str:
        raw = self.path.read_bytes()
        return (lzma.decompress(raw) if self.path.suffix == ".xz" else raw).decode()


FILES = sorted(
    CorpusFile(path.name.removesuffix(".xz"), path) for pattern in ("*.ptx", "*.ptx.xz") for path in DATA.glob(pattern)
)
NAMES = [file.name for file in FILES]
_BY_NAME = dict(zip(NAMES, FILES, strict=True))
HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n"
TEXT_FIELDS = {"text", "declaration", "initializer", "attributes"}


def corpus(name: str) -> str:
    return _BY_NAME[name].read_text()


def shape(node: Any) -> Any:
    """A tree as nested tuples, without positions, and with free text as its tokens."""
    if isinstance(node, list | tuple):
        return [shape(child) for child in node if not isinstance(child, Span)]
    if isinstance(node, dict):
        return {key: tokens(value) for key, value in node.items()}
    if not is_dataclass(node):
        return node
    names = [field.name for field in fields(node) if field.name not in ("span", "body_span", "source", "files")]
    values = [(name, getattr(node, name)) for name in names]
    return [
        type(node).__name__,
        *(tokens(value) if name in TEXT_FIELDS and isinstance(value, str) else shape(value) for name, value in values),
    ]


def statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """All statements, those in inner scopes too."""
    for node in body:
        yield node
        if isinstance(node, Scope):
            yield from statements(node.body)


def instructions(module: Module) -> list[Instruction]:
    nodes = (node for function in module.functions() for node in statements(function.body or []))
    return [node for node in nodes if isinstance(node, Instruction)]

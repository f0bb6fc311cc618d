"""The statements and instructions of a body, those of inner scopes in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ptx.tree import Instruction, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.ptx.tree import Statement


def statements_in(body: Iterable[Statement]) -> Iterator[Statement]:
    """All statements in source order; a scope's own come in its place."""
    for node in body:
        if isinstance(node, Scope):
            yield from statements_in(node.body)
        else:
            yield node


def instructions_in(body: Iterable[Statement]) -> Iterator[Instruction]:
    """All instructions in source order."""
    return (node for node in statements_in(body) if isinstance(node, Instruction))

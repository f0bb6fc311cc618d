"""The instructions of a body, those of inner scopes in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ptx.tree import Instruction, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.ptx.tree import Statement


def instructions_in(body: Iterable[Statement]) -> Iterator[Instruction]:
    """All instructions in source order."""
    for node in body:
        if isinstance(node, Scope):
            yield from instructions_in(node.body)
        elif isinstance(node, Instruction):
            yield node

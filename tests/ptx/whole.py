"""A whole module back to text, from its tree: what was parsed by its spans, made-up instructions from their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.ptx.operands import MADE_UP, print_instruction
from tui_probe.ptx.tree import Function, Instruction, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.ptx.tree import Module, Statement, TopLevel


def print_module(module: Module) -> str:
    """Print a module: unchanged code has the tokens of the source, comments between statements are gone."""
    return _lines(module.items, module.source)


def _print(node: Statement | TopLevel, source: str) -> str:
    match node:
        case Function(body=list() as body, body_span=span) if span is not None:
            return f"{source[node.span.start : span.start]}\n{{\n{_lines(body, source)}}}"
        case Scope(body=body):
            return f"{{\n{_lines(body, source)}}}"
        case Instruction(span=span) if span == MADE_UP:
            return print_instruction(node)
    return source[node.span.start : node.span.end]


def _lines(nodes: Iterable[Statement | TopLevel], source: str) -> str:
    """A line for each node. Variables of one declaration share their span and print once."""
    lines = []
    last = MADE_UP
    for node in nodes:
        if node.span != last or last == MADE_UP:
            lines.append(_print(node, source) + "\n")
        last = node.span
    return "".join(lines)

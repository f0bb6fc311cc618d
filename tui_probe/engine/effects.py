"""Which snippets of a probe matter: those that save, and those whose registers what is saved depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.engine.model import Code, Save
from tui_probe.ptx.printer import print_operand
from tui_probe.ptx.references import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.engine.model import Probe, ProbePoint, SnippetStatement


def points_without_effect(probe: Probe) -> list[ProbePoint]:
    """The points that save nothing and set no register that matters. What decides a branch matters."""
    needed = _needed_registers(probe)
    return [
        point
        for point in probe.points
        if not any(
            isinstance(statement, Save) or (isinstance(statement, Code) and needed & written_by(statement))
            for statement in _statements(point)
        )
    ]


def _needed_registers(probe: Probe) -> set[str]:
    """The registers that stand in a point that saves, or decide a branch, and those that they are computed from."""
    needed: set[str] = set()
    codes: list[tuple[set[str], set[str]]] = []
    for point in probe.points:
        statements = list(_statements(point))
        own = [(written_by(code), names_in(code.text)) for code in statements if isinstance(code, Code)]
        saved = {value for statement in statements if isinstance(statement, Save) for value in statement.values}
        codes += own
        needed |= saved.union(*(names for written, names in own if saved or not written))
    grew = True
    while grew:
        before = len(needed)
        for written, names in codes:
            if written & needed:
                needed |= names
        grew = len(needed) > before
    return needed


def _statements(point: ProbePoint) -> Iterator[SnippetStatement]:
    for snippet in (point.before, point.after):
        if snippet is not None:
            yield from snippet.statements


def written_by(code: Code) -> set[str]:
    """The registers that an instruction writes; none for a branch or a label."""
    instruction = code.instruction
    if instruction is None or instruction.opcode == "bra" or not instruction.operands:
        return set()
    return names_in(print_operand(instruction.operands[0]))

"""Which registers of a probe hold something from one snippet to another, so that a called function must be given them.

A register that a snippet sets before it reads it is its own affair. What it may read first was set elsewhere: in
another snippet, perhaps in another function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.engine.effects import written_by
from tui_probe.engine.model import Code, Save
from tui_probe.ptx.printer import print_operand
from tui_probe.ptx.references import names_in
from tui_probe.ptx.tree import Symbol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.model import Probe, Snippet, SnippetStatement


def carried_registers(probe: Probe) -> list[str]:
    """The probe's own registers that some snippet may read before it sets them, in the order of their declaration."""
    snippets = [snippet for point in probe.points for snippet in (point.before, point.after) if snippet]
    found = set[str]().union(*(_read_first(snippet) for snippet in snippets))
    return [name for name in probe.registers if name in found]


def _read_first(snippet: Snippet) -> set[str]:
    """What is live where a snippet begins."""
    statements = snippet.statements
    labels = ((_label(one), index) for index, one in enumerate(statements))
    places = {label: index for label, index in labels if label}
    live: list[set[str]] = [set() for _ in range(len(statements) + 1)]
    changed = True
    while changed:
        changed = False
        for index in reversed(range(len(statements))):
            found = set[str]().union(*(live[place] for place in _following(statements, index, places)))
            found = (found - _always_written(statements[index])) | _read(statements[index])
            if found != live[index]:
                live[index], changed = found, True
    return live[0]


def _label(statement: SnippetStatement) -> str:
    """The name of a label, or ""."""
    if not isinstance(statement, Code) or statement.instruction is not None:
        return ""
    return statement.text.partition(":")[0].strip()


def _following(statements: Sequence[SnippetStatement], index: int, places: dict[str, int]) -> list[int]:
    """The statements that may run after one."""
    statement = statements[index]
    one = statement.instruction if isinstance(statement, Code) else None
    if one is None or one.opcode != "bra":
        return [index + 1]
    targets = [places[each.name] for each in one.operands if isinstance(each, Symbol) and each.name in places]
    return targets if one.predicate is None else [*targets, index + 1]


def _always_written(statement: SnippetStatement) -> set[str]:
    if not isinstance(statement, Code) or statement.instruction is None or statement.instruction.predicate is not None:
        return set()
    return written_by(statement)


def _read(statement: SnippetStatement) -> set[str]:
    if isinstance(statement, Save):
        return set(statement.values)
    if not isinstance(statement, Code) or statement.instruction is None:
        return set()
    one = statement.instruction
    found = set[str]().union(*(names_in(print_operand(each)) for each in one.operands[1:]))
    return found | ({one.predicate.name} if one.predicate is not None else set())

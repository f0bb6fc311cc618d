"""Substitutes for ``match`` and ``redux`` of a probe in PTX that has neither: loops of ``shfl`` and ``vote``.

Each iteration takes the highest lane that is left and sends its value to all lanes of the mask. All of them execute the
same iterations, so that they stay together, which PTX for targets before sm_70 demands of ``.sync``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.snippet import parse_snippet
from tui_probe.probe_model.probe import Probe, ProbePoint, Snippet, SnippetCode
from tui_probe.ptx.tree import Pair

if TYPE_CHECKING:
    from tui_probe.probe_model.probe import SnippetStatement
    from tui_probe.ptx.tree import Instruction

REDUX_FROM: Final = 80
"""The first architecture that has ``redux``."""
_NEUTRAL_VALUES: Final = {
    "add": "0",
    "or": "0",
    "xor": "0",
    "and": "-1",
    "max.u32": "0",
    "min.u32": "-1",
    "max.s32": "-2147483648",
    "min.s32": "2147483647",
}
"""Values that leave the other operand of a reduction unchanged, by operation, or by operation and type."""
_LOOP_REGISTERS: Final = {
    **dict.fromkeys(("left", "lane", "turn", "result", "low", "high", "other"), "b32"),
    **dict.fromkeys(("equal", "again"), "pred"),
}
_MATCH_LOOP: Final = """
mov.b32 {left}, {mask};
mov.b32 {result}, 0;
{split}
{label}:
bfind.u32 {lane}, {left};
shfl.sync.idx.b32 {other}, {low_word}, {lane}, 31, {mask};
setp.eq.u32 {equal}, {other}, {low_word};
{upper}
vote.sync.ballot.b32 {turn}, {equal}, {mask};
@{equal} mov.b32 {result}, {turn};
not.b32 {turn}, {turn};
and.b32 {left}, {left}, {turn};
setp.ne.u32 {again}, {left}, 0;
@{again} bra {label};
mov.b32 {target}, {result};
"""
_MATCH_ALL: Final = """
{split}
bfind.u32 {lane}, {mask};
shfl.sync.idx.b32 {other}, {low_word}, {lane}, 31, {mask};
setp.eq.u32 {equal}, {other}, {low_word};
{upper}
vote.sync.ballot.b32 {turn}, {equal}, {mask};
setp.eq.u32 {equal}, {turn}, {mask};
selp.b32 {target}, {mask}, 0, {equal};
"""
"""``match.all`` needs no loop: each lane is compared with the highest one, and all vote."""
_UPPER_HALF: Final = """
shfl.sync.idx.b32 {other}, {high}, {lane}, 31, {mask};
setp.eq.and.u32 {equal}, {other}, {high}, {equal};
"""
"""Second comparison of 64-bit values, which ``shfl`` moves in halves."""
_REDUX_LOOP: Final = """
mov.b32 {left}, {mask};
mov.b32 {result}, {neutral};
{label}:
bfind.u32 {lane}, {left};
shfl.sync.idx.b32 {other}, {source}, {lane}, 31, {mask};
{operation} {result}, {result}, {other};
shl.b32 {turn}, 1, {lane};
xor.b32 {left}, {left}, {turn};
setp.ne.u32 {again}, {left}, 0;
@{again} bra {label};
mov.b32 {target}, {result};
"""


def can_substitute(instruction: Instruction) -> bool:
    """Return whether a substitute exists: not for ``match`` with a second result, nor for ``redux`` of floats."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "match":
        return not isinstance(instruction.operands[0], Pair)
    return opcode == "redux" and modifiers[-1] in ("u32", "s32", "b32")


def without_redux(probe: Probe, arch: int) -> Probe:
    """Return the probe in instructions that SASS of ``arch`` (90 for sm_90) has."""
    snippets = (snippet for point in probe.points for snippet in (point.before, point.after) if snippet)
    codes = (
        statement.instruction
        for snippet in snippets
        for statement in snippet.statements
        if isinstance(statement, SnippetCode)
    )
    if arch >= REDUX_FROM or not any(instruction and instruction.opcode == "redux" for instruction in codes):
        return probe
    return substitute_opcodes(probe, frozenset({"redux"}))


def substitute_opcodes(probe: Probe, opcodes: frozenset[str]) -> Probe:
    """Return the probe with substitutes, which compute the same, for all instructions of these opcodes."""
    stem = "%substitute_"  # made longer until no register of the probe begins with it
    while any(name.startswith(stem) for name in probe.registers):
        stem += "_"
    registers = {name: f"{stem}{name}" for name in _LOOP_REGISTERS}
    points = tuple(_substitute_in_point(point, opcodes, registers) for point in probe.points)
    substitute_registers = {registers[name]: kind for name, kind in _LOOP_REGISTERS.items()}
    return replace(probe, points=points, registers=probe.registers | substitute_registers)


def _substitute_in_point(point: ProbePoint, opcodes: frozenset[str], registers: dict[str, str]) -> ProbePoint:
    entry_snippet, exit_snippet = (
        snippet and _substitute_in_snippet(snippet, opcodes, registers) for snippet in (point.before, point.after)
    )
    return replace(point, before=entry_snippet, after=exit_snippet)


def _substitute_in_snippet(snippet: Snippet, opcodes: frozenset[str], registers: dict[str, str]) -> Snippet:
    statements: list[SnippetStatement] = []
    labels = set(snippet.labels)
    for statement in snippet.statements:
        if isinstance(statement, SnippetCode) and statement.instruction and statement.instruction.opcode in opcodes:
            substitute = parse_snippet(_substitute_text(statement, len(labels), registers), statement.place).snippet
            statements += [replace(replacement, place=statement.place) for replacement in substitute.statements]
            labels |= substitute.labels
        else:
            statements.append(statement)
    return replace(snippet, statements=tuple(statements), labels=frozenset(labels))


def _substitute_text(statement: SnippetCode, number: int, registers: dict[str, str]) -> str:
    """Return the substitute of one instruction, under its predicate if it has one."""
    assert statement.instruction is not None
    instruction = statement.instruction
    _, _, operation_text = statement.text.rstrip("; ").partition(f"{instruction.opcode}.")
    modifiers, _, operands = operation_text.partition(" ")
    target, source, mask = (operand.strip() for operand in operands.split(","))
    names = registers | {"label": f"SUBSTITUTE{number}", "target": target, "source": source, "mask": mask}
    loop = _match_loop(names, modifiers) if instruction.opcode == "match" else _redux_loop(names, modifiers)
    if instruction.predicate is None:
        return loop
    negation = "" if instruction.predicate_negated else "!"
    return f"@{negation}{instruction.predicate} bra SKIPPED{number};\n{loop}\nSKIPPED{number}:"


def _match_loop(names: dict[str, str], modifiers: str) -> str:
    text = _MATCH_ALL if modifiers.startswith("all") else _MATCH_LOOP
    if not modifiers.endswith("64"):
        return text.format(**names, low_word=names["source"], split="", upper="")
    split_line = "mov.b64 {{{low}, {high}}}, {source};".format(**names)
    return text.format(**names, low_word=names["low"], split=split_line, upper=_UPPER_HALF.format(**names))


def _redux_loop(names: dict[str, str], modifiers: str) -> str:
    """Return the loop for a ``redux``, whose operation is the last but one of its modifiers: ``.sync.add.u32``."""
    name, kind = modifiers.split(".")[-2:]
    neutral = _NEUTRAL_VALUES.get(f"{name}.{kind}", _NEUTRAL_VALUES.get(name, ""))
    return _REDUX_LOOP.format(**names, operation=f"{name}.{kind}", neutral=neutral)

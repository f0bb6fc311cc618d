"""``match.any`` and ``redux`` of a probe for PTX that has neither: loops of ``shfl`` and ``vote`` over the lanes.

Each turn takes the highest lane that is left and tells its value to all lanes of the mask. All of them go through the
same turns, so that they stay together, which PTX for targets before sm_70 demands of ``.sync``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import Code, Probe, ProbePoint, Snippet
from tui_probe.engine.snippet import parse_snippet
from tui_probe.engine.summation import REDUX_FROM

if TYPE_CHECKING:
    from tui_probe.engine.model import SnippetStatement
    from tui_probe.ptx.tree import Instruction

_NEUTRAL: Final = {
    "add": "0",
    "or": "0",
    "xor": "0",
    "and": "-1",
    "max.u32": "0",
    "min.u32": "-1",
    "max.s32": "-2147483648",
    "min.s32": "2147483647",
}
_REGISTERS: Final = {
    **dict.fromkeys(("left", "lane", "turn", "result", "low", "high", "other"), "b32"),
    **dict.fromkeys(("equal", "again"), "pred"),
}
_MATCH: Final = """
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
_UPPER: Final = """
shfl.sync.idx.b32 {other}, {high}, {lane}, 31, {mask};
setp.eq.and.u32 {equal}, {other}, {high}, {equal};
"""
_REDUX: Final = """
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
    """Tell whether there is something to write for an instruction."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "match":
        return "any" in modifiers
    return opcode == "redux" and modifiers[-1] in ("u32", "s32", "b32")


def without_redux(probe: Probe, arch: int) -> Probe:
    """The probe in instructions that machine code of ``arch`` (90) has."""
    snippets = (one for point in probe.points for one in (point.before, point.after) if one)
    codes = (one.instruction for snippet in snippets for one in snippet.statements if isinstance(one, Code))
    if arch >= REDUX_FROM or not any(one and one.opcode == "redux" for one in codes):
        return probe
    return with_substitutes(probe, frozenset({"redux"}))


def with_substitutes(probe: Probe, opcodes: frozenset[str]) -> Probe:
    """The probe without these instructions, and with loops that compute the same."""
    stem = "%substitute_"
    while any(name.startswith(stem) for name in probe.registers):
        stem += "_"
    registers = {name: f"{stem}{name}" for name in _REGISTERS}
    points = tuple(_of_point(point, opcodes, registers) for point in probe.points)
    added = {registers[name]: kind for name, kind in _REGISTERS.items()}
    return replace(probe, points=points, registers=probe.registers | added)


def _of_point(point: ProbePoint, opcodes: frozenset[str], registers: dict[str, str]) -> ProbePoint:
    before, after = (one and _of_snippet(one, opcodes, registers) for one in (point.before, point.after))
    return replace(point, before=before, after=after)


def _of_snippet(snippet: Snippet, opcodes: frozenset[str], registers: dict[str, str]) -> Snippet:
    statements: list[SnippetStatement] = []
    labels = set(snippet.labels)
    for statement in snippet.statements:
        if isinstance(statement, Code) and statement.instruction and statement.instruction.opcode in opcodes:
            written = parse_snippet(_text(statement, len(labels), registers), statement.place).snippet
            statements += [replace(one, place=statement.place) for one in written.statements]
            labels |= written.labels
        else:
            statements.append(statement)
    return replace(snippet, statements=tuple(statements), labels=frozenset(labels))


def _text(statement: Code, number: int, registers: dict[str, str]) -> str:
    """The loop in the place of one instruction, under its predicate if it has one."""
    assert statement.instruction is not None
    instruction = statement.instruction
    _, _, written = statement.text.rstrip("; ").partition(f"{instruction.opcode}.")
    modifiers, _, operands = written.partition(" ")
    target, source, mask = (operand.strip() for operand in operands.split(","))
    names = registers | {"label": f"SUBSTITUTE{number}", "target": target, "source": source, "mask": mask}
    loop = _match(names, modifiers) if instruction.opcode == "match" else _redux(names, modifiers)
    if instruction.predicate is None:
        return loop
    unless = "" if instruction.predicate_negated else "!"
    return f"@{unless}{instruction.predicate} bra SKIPPED{number};\n{loop}\nSKIPPED{number}:"


def _match(names: dict[str, str], modifiers: str) -> str:
    if not modifiers.endswith("64"):
        return _MATCH.format(**names, low_word=names["source"], split="", upper="")
    split = "mov.b64 {{{low}, {high}}}, {source};".format(**names)
    return _MATCH.format(**names, low_word=names["low"], split=split, upper=_UPPER.format(**names))


def _redux(names: dict[str, str], modifiers: str) -> str:
    """The operation is the last but one of the modifiers: ``.sync.add.u32``."""
    name, kind = modifiers.split(".")[-2:]
    neutral = _NEUTRAL.get(f"{name}.{kind}", _NEUTRAL.get(name, ""))
    return _REDUX.format(**names, operation=f"{name}.{kind}", neutral=neutral)

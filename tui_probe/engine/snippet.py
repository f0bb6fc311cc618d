"""Parse the snippets of a probe file into statements; find those without effect, and those equal in all lanes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.engine.helper_values.allocation_bounds import BOUNDS_HELPERS
from tui_probe.engine.helper_values.helpers import BOX_HELPERS
from tui_probe.engine.helper_values.nonfinite import NONFINITE_HELPERS
from tui_probe.errors import ProbeFileError, PtxError
from tui_probe.probe_model.probe import (
    LONGEST_HELPER,
    WAIT_HELPER,
    FileLocation,
    Locate,
    Probe,
    Save,
    Snippet,
    SnippetCode,
    SnippetStatement,
)
from tui_probe.ptx.lexer import COMMENT, NAME
from tui_probe.ptx.operands import print_operand
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import names_in
from tui_probe.ptx.tree import Instruction, Label, Statement, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probe_model.probe import ProbePoint

_WARP_REGISTERS: Final = frozenset(
    {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi", "%smid", "%nsmid"}
    | {f"%{name}.{axis}" for name in ("ctaid", "nctaid", "ntid") for axis in "xyz"}
    | {"%gridid", "%warpid", "%nwarpid"}
)
"""Special registers that are equal in all lanes of a warp."""
_REGISTER_NAME: Final = re.compile(r"%[A-Za-z_$][\w$.]*")
BLOCK_HELPER: Final = "INSTRUCTIONS"
"""The number of instructions of the position's class in a basic block."""
ISSUED_HELPER: Final = "ISSUED"
"""The number of machine instructions that those of the position's class come to."""
LINE_HELPER: Final = "LINE"
"""The line in ``pruned.ptx`` of the probed instruction, or of the first one of a basic block."""
LAUNCH_HELPER: Final = "LAUNCH"
"""The number of the launch, in probes with a resident map."""
SNIPPET_HELPERS: Final = (
    frozenset({"OUT", "IN1", "IN2", "IN3", "ADDR", "BYTES", "MULTIPLY_ADDS"})
    | {BLOCK_HELPER, ISSUED_HELPER, LINE_HELPER, WAIT_HELPER, LONGEST_HELPER, LAUNCH_HELPER}
    | NONFINITE_HELPERS
    | BOX_HELPERS
    | BOUNDS_HELPERS
)

_PARSE_FRAME: Final = (".version 8.0\n.target sm_80\n.address_size 64\n.entry snippet()\n{\n", "\n}\n")
_FRAME_LINES: Final = _PARSE_FRAME[0].count("\n")
_COMMENT: Final = re.compile(COMMENT)
_NAME: Final = re.compile(NAME)
_SAVE: Final = re.compile(r"SAVE(?:\s*\.\s*(u32|u64))?\s*(?:\[\s*([A-Za-z_]\w*)\s*\])?\s*,?\s*\{([^{}]*)\}\s*;")
_ADD: Final = re.compile(r"ADD\s*\[\s*([A-Za-z_]\w*)\s*\]\s*,?\s*\{([^{}]*)\}\s*;")
_LOCATE: Final = re.compile(r"LOCATE\s*\[\s*([A-Za-z_]\w*)\s*\]\s*;")


@dataclass(slots=True)
class ParsedSnippet:
    """A snippet, the registers that it declares, and the types of ``SAVE.u64 {…}`` values, in order."""

    snippet: Snippet
    registers: dict[str, str] = field(default_factory=dict)
    save_types: list[str] = field(default_factory=list)


class _SnippetParser:
    """Turns one snippet into statements. ``own_map`` is where a ``SAVE`` without a map's name goes."""

    def __init__(self, text: str, place: FileLocation, own_map: str) -> None:
        self._source = text.join(_PARSE_FRAME)
        self._place = place
        self._own_map = own_map
        self._statements: list[SnippetStatement] = []
        self._parsed = ParsedSnippet(Snippet(()))

    def parse(self) -> ParsedSnippet:
        body = self._parse_body()
        for statement in body:
            self._parse_statement(statement)
        labels = frozenset(statement.name for statement in body if isinstance(statement, Label))
        texts = [s.text if isinstance(s, SnippetCode) else " ".join(getattr(s, "values", ())) for s in self._statements]
        helpers = SNIPPET_HELPERS.intersection(name for text in texts for name in _NAME.findall(text))
        self._parsed.snippet = Snippet(tuple(self._statements), labels, frozenset(helpers))
        return self._parsed

    def _parse_body(self) -> list[Statement]:
        """Return the statements, parsed as the body of a kernel."""
        try:
            functions = parse(self._source).functions()
            if len(functions) == 1 and functions[0].span.end == len(self._source) - 1:
                return functions[0].body or []
        except PtxError as error:
            reason = str(error).removeprefix(f"line {error.line}: ")
            raise ProbeFileError(f"{self._location(error.line)}: {reason}") from error
        raise ProbeFileError(f"{self._place}: the braces of this snippet do not match")

    def _location(self, line: int) -> FileLocation:
        """Return the place in the probe file of a line of the parsed text."""
        line = max(line - _FRAME_LINES, 1)
        return FileLocation(self._place.path, self._place.line + line - 1 if self._place.line else 0)

    def _parse_statement(self, statement: Statement) -> None:
        place = self._location(statement.span.line)
        text = self._one_line(statement)
        match statement:
            case Variable(space="reg"):
                self._parse_declaration(statement, place)
            case Instruction(opcode="SAVE"):
                self._parse_save(text, place)
            case Instruction(opcode="ADD"):
                self._parse_add(text, place)
            case Instruction(opcode="LOCATE"):
                if (match := _LOCATE.fullmatch(text)) is None:
                    raise ProbeFileError(f"{place}: write LOCATE as 'LOCATE [ map ];', not {text!r}")
                self._statements.append(Locate(match[1], place))
            case Instruction():
                self._statements.append(SnippetCode(text, place, statement))
            case Label(declaration=""):
                self._statements.append(SnippetCode(text, place))
            case _:
                raise ProbeFileError(
                    f"{place}: a snippet may contain instructions, labels, .reg, LOCATE, SAVE and ADD, not {text!r}"
                )

    def _one_line(self, statement: Statement) -> str:
        """Return a statement on one line, without comments."""
        text = self._source[statement.span.start : statement.span.end]
        return " ".join(_COMMENT.sub(" ", text).split())

    def _parse_declaration(self, variable: Variable, place: FileLocation) -> None:
        if variable.vector != 1 or variable.is_array:
            raise ProbeFileError(f"{place}: declare {variable.name} as a plain register, such as '.reg .b32 %count;'")
        names = [f"{variable.name}{i}" for i in range(min(variable.count, 1024))] or [variable.name]
        for name in names:
            if self._parsed.registers.setdefault(name, variable.type) != variable.type:
                raise ProbeFileError(f"{place}: {name} is declared twice, with different types")

    def _parse_save(self, text: str, place: FileLocation) -> None:
        match = _SAVE.fullmatch(text)
        if match is None:
            raise ProbeFileError(
                f"{place}: {text!r} is not a valid SAVE; write 'SAVE [ map ] {{%a, %b}};' or 'SAVE.u64 {{%a}};' (for a"
                " condition, use a branch)"
            )
        field_type, name, values = match.groups()
        operands = self._split_values("SAVE", values, place)
        if not name and not self._own_map:
            raise ProbeFileError(f"{place}: SAVE needs the name of its map: 'SAVE [ map ] {{…}};'")
        self._statements.append(Save(name or self._own_map, operands, place))
        self._parsed.save_types += [field_type or ""] * len(operands)

    def _parse_add(self, text: str, place: FileLocation) -> None:
        match = _ADD.fullmatch(text)
        if match is None:
            raise ProbeFileError(
                f"{place}: {text!r} is not a valid ADD; write 'ADD [ map ] {{%a, %b}};' (for a condition, use a branch)"
            )
        self._statements.append(Save(match[1], self._split_values("ADD", match[2], place), place, adds=True))

    def _split_values(self, word: str, values: str, place: FileLocation) -> tuple[str, ...]:
        operands = tuple(value.strip() for value in values.split(","))
        if "" in operands:
            raise ProbeFileError(f"{place}: {word} has an empty value; remove the extra comma, or name a register")
        return operands


def parse_snippet(text: str, place: FileLocation, own_map: str = "") -> ParsedSnippet:
    """Parse the text of a ``before`` or ``after``, whose first line is at ``place``.

    Raises ProbeFileError, with the line.
    """
    return _SnippetParser(text, place, own_map).parse()


def merge_saves(snippet: Snippet) -> Snippet:
    """Merge several saves into the last, as files with ``SAVE.u64`` and ``SAVE.u32`` have."""
    saves = [statement for statement in snippet.statements if isinstance(statement, Save) and not statement.adds]
    if len(saves) < 2:
        return snippet
    values = tuple(value for save in saves for value in save.values)
    merged_save = Save(saves[-1].map, values, saves[-1].place)
    statements = [
        merged_save if s is saves[-1] else s for s in snippet.statements if not any(s is save for save in saves[:-1])
    ]
    return Snippet(tuple(statements), snippet.labels, snippet.helpers)


def points_without_effect(probe: Probe) -> list[ProbePoint]:
    """Return the points that save nothing and set no register that decides what is saved."""
    needed_registers = _needed_registers(probe)
    return [
        point
        for point in probe.points
        if not any(
            isinstance(statement, Save)
            or (isinstance(statement, SnippetCode) and needed_registers & written_registers(statement))
            for statement in point_statements(point)
        )
    ]


def _needed_registers(probe: Probe) -> set[str]:
    """Return the registers that decide what is saved: those in points with saves or in branches, and their sources."""
    registers: set[str] = set()
    codes: list[tuple[set[str], set[str]]] = []
    for point in probe.points:
        statements = list(point_statements(point))
        effects = [
            (written_registers(code), names_in(code.text)) for code in statements if isinstance(code, SnippetCode)
        ]
        saved_values = {value for statement in statements if isinstance(statement, Save) for value in statement.values}
        codes += effects
        registers |= saved_values.union(*(names for destinations, names in effects if saved_values or not destinations))
    is_growing = True
    while is_growing:
        old_size = len(registers)
        for destinations, names in codes:
            if destinations & registers:
                registers |= names
        is_growing = len(registers) > old_size
    return registers


def point_statements(point: ProbePoint) -> Iterator[SnippetStatement]:
    """Yield the statements of a point, of ``before`` first."""
    for snippet in (point.before, point.after):
        if snippet is not None:
            yield from snippet.statements


def written_registers(code: SnippetCode) -> set[str]:
    """Return the registers that an instruction writes; none for a branch or a label."""
    instruction = code.instruction
    if instruction is None or instruction.opcode == "bra" or not instruction.operands:
        return set()
    return names_in(print_operand(instruction.operands[0]))


def saves_uniform_values(probe: Probe, own_map: str = "") -> bool:
    """Return whether all values that a probe saves, in one map or in all, are equal in all lanes of a warp, so that any
    lane may save them.

    The snippets read no registers of a lane and no memory, and are at entries and exits only, where all arriving lanes
    of a warp took the same path through the code of the probe.
    """
    return all(
        all(position.is_kernel for position in point.positions) and _is_snippet_uniform(probe, snippet)
        for point in probe.points
        for snippet in (point.before, point.after)
        if snippet and (not own_map or own_map in _saved_maps(snippet))
    )


def _saved_maps(snippet: Snippet) -> set[str]:
    return {statement.map for statement in snippet.statements if isinstance(statement, Save)}


def _is_snippet_uniform(probe: Probe, snippet: Snippet) -> bool:
    if snippet.helpers:
        return False
    names: list[str] = []
    for statement in snippet.statements:
        if isinstance(statement, SnippetCode):
            if "[" in statement.text:
                return False
            names += _REGISTER_NAME.findall(statement.text)
        elif isinstance(statement, Save):
            names += [value for value in statement.values if value.startswith("%")]
    return all(word in probe.registers or word in _WARP_REGISTERS for word in names)

"""Function bodies: statements, scopes, labels, instructions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import PtxError
from tui_probe.ptx.declarations import LINKAGES, SPACES, NotDeclarationError, parse_variables
from tui_probe.ptx.lexer import (
    DOTTED,
    NAME,
    SPACE,
    TRIVIA,
    Token,
    TokenKind,
    line_of,
    raise_bad_token,
    skip_trivia,
    tokenize,
)
from tui_probe.ptx.operands import OperandParser
from tui_probe.ptx.tree import (
    Directive,
    Function,
    Instruction,
    Label,
    Location,
    Raw,
    Register,
    Scope,
    Span,
    Statement,
    Variable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_SCOPES: Final = 200
"""Nested scopes that are read: a parser that calls itself must not run out of Python's stack."""
_OPERAND_TEXT: Final = r'[^;:"/{}]*+'
_ANY_NUMBER: Final = rf"{TRIVIA}[0-9]{{1,9}}+(?![A-Za-z0-9_$.])"
_NUMBER: Final = rf"{TRIVIA}([0-9]{{1,9}}+)(?![A-Za-z0-9_$.])"
_INSTRUCTION: Final = 1  # and its parts: 2 "!", 3 guard, 4 opcode with modifiers, 5 operands
_LABEL: Final = 6
_LOCATION: Final = 7  # and its parts: 8 file, 9 line, 10 column
_DOTTED: Final = 11
_BRACE: Final = 12
_STATEMENT: Final = re.compile(
    rf"{TRIVIA}(?:"
    rf"((?>@{SPACE}*+(!?){SPACE}*+({NAME}){SPACE}*+|)({NAME}(?:{DOTTED}|)*+)"
    rf"(?!{SPACE}*+\.|[A-Za-z0-9_$])({_OPERAND_TEXT}(?:\{{{_OPERAND_TEXT}\}}{_OPERAND_TEXT}|)*+);)"
    rf"|({NAME}){SPACE}*+:(?!:)"
    rf"|(\.loc(?![A-Za-z0-9_$:]){_NUMBER}{_NUMBER}{_NUMBER}"
    rf"(?>{TRIVIA},{TRIVIA}function_name{TRIVIA}{NAME}(?>{TRIVIA}\+{_ANY_NUMBER}|){TRIVIA},"
    rf"{TRIVIA}inlined_at{_ANY_NUMBER}{_ANY_NUMBER}{_ANY_NUMBER}|))"
    rf"|({DOTTED})"
    rf"|([{{}}])"
    rf"|(?!/\*)(?=[^ \t\r\n\f\v\"])"
    rf")"
)
_THREE_NUMBERS: Final = re.compile(_ANY_NUMBER * 3)
_LABEL_DIRECTIVE: Final = re.compile(rf"{TRIVIA}(\.(?:branchtargets|calltargets|callprototype))(?![A-Za-z0-9_$:])")


class _Frame(NamedTuple):
    """A scope that is still open, and what to return to when it closes."""

    statements: list[Statement]
    operands: OperandParser
    scope: Scope


class _BodyParser:
    """Parses the statements between the braces of one function."""

    def __init__(self, source: str, span: Span, registers: dict[str, int]) -> None:
        self._source = source
        self._position = span.start + 1
        self._end = span.end - 1
        self._line = span.line
        self._counted_position = span.start
        self._operands = OperandParser(registers)
        self._opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._statements: list[Statement] = []
        self._frames: list[_Frame] = []

    def parse(self) -> list[Statement]:
        source, end = self._source, self._end
        while match := _STATEMENT.match(source, self._position, end):
            form = match.lastindex
            self._position = match.end()
            if form == _INSTRUCTION:
                self._instruction(match)
            elif form == _LOCATION:
                self._location(match)
            elif form == _LABEL:
                self._label(match[_LABEL], match.start(_LABEL))
            elif form == _DOTTED:
                self._dotted(match[_DOTTED][1:], match.start(_DOTTED))
            elif form == _BRACE:
                self._brace(match[_BRACE], match.start(_BRACE))
            else:
                self._unusual_statement(match.end())
        position = skip_trivia(source, self._position, end)
        if position < end:
            raise_bad_token(source, position)
        if self._frames:
            raise PtxError("this '{' is not closed", self._frames[-1].scope.span.line)
        return self._statements

    def _span(self, start: int, end: int) -> Span:
        self._line += self._source.count("\n", self._counted_position, start)
        self._counted_position = start
        return Span(start, end, self._line)

    def _instruction(self, match: re.Match[str]) -> None:
        _, negation, guard, dotted, operands = match.group(1, 2, 3, 4, 5)
        start, end = match.span(_INSTRUCTION)
        self._add_instruction(dotted, operands, self._span(start, end), guard, bool(negation))

    def _add_instruction(self, dotted: str, operands: str, span: Span, guard: str | None, negated: bool) -> None:
        parts = self._opcodes.get(dotted)
        if parts is None:
            opcode, *modifiers = dotted.split(".")
            parts = self._opcodes[dotted] = (opcode, tuple(modifiers))
        predicate = Register(guard) if guard else None
        nodes = self._operands.parse(operands)
        self._statements.append(Instruction(*parts, nodes, span, predicate, negated))

    def _location(self, match: re.Match[str]) -> None:
        file, line, column = match.group(8, 9, 10)
        span = self._span(*match.span(_LOCATION))
        self._statements.append(Location(int(file), int(line), int(column), span))

    def _label(self, name: str, start: int) -> None:
        """A label and, behind it, the directive that it names."""
        span = self._span(start, self._position)
        declaration = ""
        if match := _LABEL_DIRECTIVE.match(self._source, self._position, self._end):
            tokens = self._to_semicolon(match.start(1))
            span.end = tokens[-1].end
            declaration = self._source[match.start(1) : span.end]
        self._statements.append(Label(name, span, declaration))

    def _brace(self, brace: str, start: int) -> None:
        if brace == "{":
            if len(self._frames) == _MAX_SCOPES:
                raise PtxError(f"scopes nested more than {_MAX_SCOPES} deep", line_of(self._source, start))
            scope = Scope([], self._span(start, self._position))
            self._statements.append(scope)
            self._frames.append(_Frame(self._statements, self._operands, scope))
            self._statements = scope.body
            return
        if not self._frames:
            raise PtxError("this '}' closes nothing", line_of(self._source, start))
        self._statements, self._operands, scope = self._frames.pop()
        scope.span.end = self._position

    def _dotted(self, name: str, start: int) -> None:
        """A declaration or a directive."""
        if name in SPACES or name in LINKAGES:
            self._declaration(name, start)
            return
        if name == "loc_intermediate":
            numbers = _THREE_NUMBERS.match(self._source, self._position, self._end)
            self._position = numbers.end() if numbers else self._position
        if not name.startswith("loc"):
            self._add_directive(name, start, self._to_semicolon(start)[-1].end)
        else:  # a .loc of no known form: what follows it stands for itself
            self._add_directive(name, start, self._position)

    def _add_directive(self, name: str, start: int, end: int) -> None:
        self._statements.append(Directive(name, self._source[start:end], self._span(start, end)))

    def _declaration(self, name: str, start: int) -> None:
        tokens = self._to_semicolon(start)
        end = tokens[-1].end
        try:
            variables = parse_variables(self._source, tokens[:-1], self._span(start, end))
        except NotDeclarationError:
            self._add_directive(name, start, end)
            return
        self._statements.extend(variables)
        if names := bare_registers(variables):
            self._operands = self._operands.with_registers(names)

    def _unusual_statement(self, start: int) -> None:
        """A statement that needs the lexer: comments or strings inside, or of no known form."""
        token, next_token = self._two_tokens(start)
        if token.kind is TokenKind.NAME and next_token is not None and next_token.text == ":":
            self._position = next_token.end
            self._label(token.text, start)
            return
        tokens = self._to_semicolon(start)
        span = self._span(start, tokens[-1].end)
        index, guard, negated = _guard(tokens)
        if tokens[index].kind is not TokenKind.NAME:
            raw = Raw(self._source[start : tokens[-1].start].rstrip())
            self._statements.append(Instruction("", (), (raw,), span))
            return
        dotted = tokens[index].text
        index += 1
        while tokens[index].kind is TokenKind.DOTTED:
            dotted += tokens[index].text
            index += 1
        operands = self._source[tokens[index].start : tokens[-1].start]
        self._add_instruction(dotted, operands, span, guard, negated)

    def _two_tokens(self, start: int) -> tuple[Token, Token | None]:
        tokens = tokenize(self._source, start, self._end)
        return next(tokens), next(tokens, None)

    def _to_semicolon(self, start: int) -> list[Token]:
        """Return the tokens of the statement that begins at ``start``, its semicolon included."""
        tokens = []
        depth = 0
        for token in tokenize(self._source, start, self._end):
            tokens.append(token)
            if token.text == "{":
                depth += 1
            elif token.text == "}":
                depth -= 1
            if depth < 0 or (depth and token.text == ";"):
                break
            if token.text == ";":
                self._position = token.end
                return tokens
        raise PtxError("this statement is not closed by ';'", line_of(self._source, start))


def _guard(tokens: list[Token]) -> tuple[int, str | None, bool]:
    """Return the index after ``@p`` or ``@!p``, the register's name, and whether it is negated."""
    if tokens[0].text != "@":
        return 0, None, False
    negated = tokens[1].text == "!"
    index = 2 if negated else 1
    if tokens[index].kind is not TokenKind.NAME:
        return 0, None, False
    return index + 1, tokens[index].text, negated


def bare_registers(variables: Iterable[Variable]) -> dict[str, int]:
    """Return the declared registers whose names do not tell that they are registers, with their counts."""
    return {v.name: v.count for v in variables if v.space == "reg" and v.name[0] != "%"}


def parse_body(source: str, function: Function) -> list[Statement]:
    """Return the statements of the body that ``function.body_span`` covers; none for a declaration.

    What is not understood becomes an Instruction with Raw operands or a Directive.
    Raises PtxError for text that no statement can be cut out of.
    """
    if function.body_span is None:
        return []
    registers = bare_registers((*function.returns, *function.parameters))
    return _BodyParser(source, function.body_span, registers).parse()

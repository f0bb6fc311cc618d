"""Operands of instructions: text to nodes of the tree, and nodes and instructions back to text.

Most operands are a register, a number, a name or a simple address. Those are distinguished by one pattern
and remembered, for they repeat. Anything else goes token by token; what even that does not understand
becomes ``Raw``.

What was parsed is the source that its span covers. An instruction that was made up has an empty span (``MADE_UP``). To
change a parsed one, make up another: ``dataclasses.replace(node, operands=…, span=MADE_UP)``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.constants import PRODUCT, ConstantReader, Integer, NotConstantError, literal_text
from tui_probe.ptx.lexer import NAME, NUMBER, SPACE, Token, TokenKind, tokenize
from tui_probe.ptx.tree import (
    Element,
    Immediate,
    Instruction,
    Memory,
    Negated,
    Operand,
    OperandList,
    Pair,
    Raw,
    Register,
    Span,
    Sum,
    Symbol,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_DEPTH: Final = 16
_SPACES: Final = " \t\r\n\f\v"
_CONSTANT_STARTS: Final = frozenset({"(", "-", "+", "!", "~", "WARP_SZ"})
_OPERAND_ENDS: Final = frozenset({"", ",", "}", ")", "]", "|"})
_CLOSERS: Final = {"{": "}", "(": ")", "[": "]"}
_SIMPLE: Final = re.compile(
    rf"{SPACE}*+(?:"
    rf"(?P<name>{NAME})(?>\.(?P<selector>[A-Za-z][A-Za-z0-9_]*+)|)"
    rf"|(?P<number>-?{NUMBER})"
    rf"|\[{SPACE}*+(?P<base>{NAME})(?>{SPACE}*+\+{SPACE}*+(?P<offset>-?{NUMBER})|){SPACE}*+\]"
    rf"){SPACE}*+"
)
_PIECE: Final = re.compile(r"(?:^|(?<=,))(?:[^,{}()\[\]]|\{[^{}]*\}|\([^()]*\)|\[[^\[\]]*\]|)*+(?=,|\Z)")
_INTEGER: Final = re.compile(r"(-?)(?:0[xX]([0-9a-fA-F]++)|0[bB]([01]++)|(0[0-7]*+)|([1-9][0-9]{0,39}))U?")
_NUMBERED_NAME: Final = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})\Z", re.DOTALL)
MADE_UP: Final = Span(0, 0, 0)


def parse_integer(text: str) -> int | None:
    """Return the value of an integer literal (decimal, ``0x``, ``0b``, octal, ``U`` suffix), or None."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if hexadecimal:
        value = int(hexadecimal, 16)
    elif binary:
        value = int(binary, 2)
    else:
        value = int(octal, 8) if octal else int(decimal)
    return -value if sign else value


class _NotUnderstoodError(Exception):
    """The tokens at hand are not an operand of the tree."""


class OperandParser:
    """Turns operand text into nodes, within one scope.

    ``registers`` maps the names of registers declared here that do not begin with ``%`` to the count of a
    parameterised declaration (``r<5>`` declares r0 to r4), or 0.
    """

    def __init__(self, registers: dict[str, int] | None = None) -> None:
        self._registers = registers or {}
        self._nodes: dict[str, Operand] = {}

    def with_registers(self, names: dict[str, int]) -> OperandParser:
        """Return a parser for the rest of a scope that also declares the registers ``names``."""
        return OperandParser(self._registers | names)

    def is_register(self, name: str) -> bool:
        """Return whether ``name`` is a register in this scope."""
        if name[0] == "%" or not self._registers:
            return name[0] == "%" and len(name) > 1
        if self._registers.get(name) == 0:
            return True
        match = _NUMBERED_NAME.match(name)
        return match is not None and int(match[2]) < self._registers.get(match[1], 0)

    def parse(self, text: str) -> tuple[Operand, ...]:
        """Return the operands in ``text``, which is what is between an opcode and its semicolon."""
        pieces = _PIECE.findall(text) if "{" in text or "(" in text else text.split(",")
        if ",".join(pieces) == text:
            operands = self._parse_pieces(pieces)
            if operands is not None:
                return operands
        tokens = list(tokenize(text))
        return _TokenParser(self, text, tokens).operands() if tokens else ()

    def _parse_pieces(self, pieces: list[str]) -> tuple[Operand, ...] | None:
        """Return the operands of simple form in ``pieces``, or None if one is not simple."""
        nodes = self._nodes
        operands = []
        for piece in pieces:
            operand = nodes.get(piece)
            if operand is None:
                name = piece.strip(_SPACES)
                # Most operands are registers such as %r1, for which no pattern is needed.
                is_plain = name[:1] == "%" and name[1:].isalnum() and name.isascii()
                operand = Register(name) if is_plain else self._simple(piece)
                if operand is None:
                    return None
                nodes[piece] = operand
            operands.append(operand)
        return tuple(operands)

    def name_node(self, name: str, selector: str = "") -> Register | Symbol | Immediate:
        """Return the node of a name."""
        if self.is_register(name):
            return Register(name, selector)
        if name == "WARP_SZ":
            return Immediate(name)
        return Symbol(name)

    def _simple(self, piece: str) -> Operand | None:
        match = _SIMPLE.fullmatch(piece)
        if match is None:
            return self._simple_vector(piece.strip())
        name, selector, number, base, offset = match.group("name", "selector", "number", "base", "offset")
        if name:
            node = self.name_node(name, selector or "")
            return node if not selector or isinstance(node, Register) else None
        if number:
            return Immediate(number)
        value = parse_integer(offset) if offset else 0
        node = self.name_node(base)
        return None if value is None or isinstance(node, Immediate) else Memory(node, value)

    def _simple_vector(self, piece: str) -> Vector | None:
        if piece[:1] != "{" or piece[-1] != "}":
            return None
        elements = self._parse_pieces(piece[1:-1].split(","))
        return None if elements is None else Vector(elements)


class _TokenParser:
    """Recursive descent over the tokens of one operand list."""

    def __init__(self, scope: OperandParser, text: str, tokens: list[Token]) -> None:
        self._scope = scope
        self._text = text
        self._tokens = tokens
        self._position = 0
        self._depth = 0

    def operands(self) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        while True:
            start = self._position
            self._depth = 0
            try:
                operand = self._operand()
                if self._peek() not in ("", ","):
                    raise _NotUnderstoodError
            except _NotUnderstoodError:
                operand = self._raw(start)
            operands.append(operand)
            if not self._accept(","):
                return tuple(operands)

    def _peek(self) -> str:
        return self._tokens[self._position].text if self._position < len(self._tokens) else ""

    def _take(self) -> Token:
        if self._position == len(self._tokens):
            raise _NotUnderstoodError
        self._position += 1
        return self._tokens[self._position - 1]

    def _accept(self, text: str) -> bool:
        if self._peek() != text:
            return False
        self._position += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise _NotUnderstoodError

    def _raw(self, start: int) -> Raw:
        """Return the tokens from ``start`` to the next comma outside brackets, as text."""
        self._position = start
        closers: list[str] = []
        while text := self._peek():
            if text == "," and not closers:
                break
            if text in _CLOSERS:
                closers.append(_CLOSERS[text])
            elif closers and text == closers[-1]:
                closers.pop()
            self._position += 1
        if self._position == start:
            return Raw("")
        return Raw(self._text[self._tokens[start].start : self._tokens[self._position - 1].end])

    def _operand(self) -> Operand:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _NotUnderstoodError
        operand = self._single()
        if self._accept("|"):
            operand = Pair(operand, self._operand())
        self._depth -= 1
        return operand

    def _single(self) -> Operand:
        constant = self._constant()
        if constant is not None:
            return constant
        token = self._take()
        if token.kind is TokenKind.NAME:
            return self._name(token)
        if token.kind is TokenKind.NUMBER:
            return Immediate(token.text)
        match token.text:
            case "{":
                return Vector(self._list("}"))
            case "(":
                return OperandList(self._list(")"))
            case "[":
                return self._memory()
            case "!":
                return Negated("!", self._operand())
            case "-":
                return self._minus()
            case _:
                raise _NotUnderstoodError

    def _constant(self) -> Immediate | None:
        """Return a constant expression of more than one literal, as the literal that it stands for.

        What is in parentheses from end to end stays an operand in parentheses, as of a call.
        """
        start = self._position
        if self._peek() not in _CONSTANT_STARTS and not self._peek()[:1].isdigit():
            return None
        reader = ConstantReader(self._tokens, start)
        try:
            value = reader.expression()
        except NotConstantError:
            return None
        end = reader.position
        is_literal = end - start == 1 or (end - start == 2 and self._peek() == "-")
        following_text = self._tokens[end].text if end < len(self._tokens) else ""
        if is_literal or following_text not in _OPERAND_ENDS or self._is_parenthesised(start, end):
            return None
        self._position = end
        return Immediate(literal_text(value))

    def _is_parenthesised(self, start: int, end: int) -> bool:
        depth = 0
        for index in range(start, end):
            depth += (self._tokens[index].text == "(") - (self._tokens[index].text == ")")
            if not depth:
                return index == end - 1 and end - start > 1
        return False

    def _minus(self) -> Operand:
        if self._position < len(self._tokens) and self._tokens[self._position].kind is TokenKind.NUMBER:
            return Immediate("-" + self._take().text)
        return Negated("-", self._operand())

    def _name(self, token: Token) -> Operand:
        if self._peek().startswith(".") and self._scope.is_register(token.text):
            return Register(token.text, self._take().text[1:])
        node = self._scope.name_node(token.text)
        if isinstance(node, Symbol) and self._peek() in ("+", "-"):
            return Symbol(node.name, self._offset())
        if isinstance(node, Register) and self._peek() in ("+", "-"):
            return Sum(node, self._offset())
        if isinstance(node, Symbol) and self._accept("["):
            return self._element(node.name)
        return node

    def _element(self, name: str) -> Element:
        """Parse what follows ``name[``: a number or a register; sums are not understood alike by assemblers."""
        index = self._single()
        self._expect("]")
        if isinstance(index, Immediate) and parse_integer(index.text) is not None:
            return Element(name, index)
        if isinstance(index, Register):
            return Element(name, index)
        raise _NotUnderstoodError

    def _list(self, closer: str) -> tuple[Operand, ...]:
        if self._accept(closer):
            return ()
        operands = [self._operand()]
        while self._accept(","):
            operands.append(self._operand())
        self._expect(closer)
        return tuple(operands)

    def _offset(self) -> int:
        """``+4``, ``+-4``, ``-4``, ``+4+8``, ``+(2*4)`` or nothing."""
        total = 0
        while self._peek() in ("+", "-"):
            negative = self._take().text == "-"
            reader = ConstantReader(self._tokens, self._position)
            try:
                value = reader.operation(PRODUCT)
            except NotConstantError:
                raise _NotUnderstoodError from None
            if not isinstance(value, Integer):
                raise _NotUnderstoodError
            self._position = reader.position
            total += -value.value if negative else value.value
        return total

    def _memory(self) -> Memory:
        base: Register | Symbol | None = None
        if self._tokens[self._position : self._position + 1] and self._tokens[self._position].kind is TokenKind.NAME:
            token = self._take()
            node = self._scope.name_node(token.text)
            if isinstance(node, Immediate):
                raise _NotUnderstoodError
            base, offset = node, self._offset()
        else:
            negative = self._accept("-")
            value = parse_integer(self._take().text)
            if value is None:
                raise _NotUnderstoodError
            offset = -value if negative else value
        coordinates: tuple[Operand, ...] = ()
        if self._accept(","):
            self._expect("{")
            coordinates = self._list("}")
        self._expect("]")
        return Memory(base, offset, coordinates)


def tokens(source: str) -> list[str]:
    """Return the tokens of ``source`` as text, without white space and comments. Raises PtxError."""
    return [token.text for token in tokenize(source)]


def print_operand(operand: Operand) -> str:
    """Print an operand as PTX."""
    match operand:
        case Register():
            return str(operand)
        case Immediate(text) | Raw(text):
            return text
        case Symbol(name, offset):
            return f"{name}+{offset}" if offset else name
        case Sum(base, offset):
            return f"{base}+{offset}"
        case Element(name, index):
            return f"{name}[{print_operand(index)}]"
        case Memory():
            return _print_memory(operand)
        case Vector(elements):
            return "{" + _print_list(elements) + "}"
        case OperandList(elements):
            return "(" + _print_list(elements) + ")"
        case Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case Negated(sign, inner):
            return sign + print_operand(inner)


def _print_list(operands: Iterable[Operand]) -> str:
    return ", ".join(map(print_operand, operands))


def _print_memory(memory: Memory) -> str:
    base = "" if memory.base is None else print_operand(memory.base)
    offset = str(memory.offset) if memory.offset or not base else ""
    address = "+".join(filter(None, (base, offset)))
    if memory.coordinates:
        address += ", {" + _print_list(memory.coordinates) + "}"
    return f"[{address}]"


def print_instruction(instruction: Instruction) -> str:
    """Print an instruction as PTX, from its fields, with guard and semicolon."""
    guard = ""
    if instruction.predicate is not None:
        guard = f"@{'!' if instruction.predicate_negated else ''}{instruction.predicate} "
    opcode = ".".join((instruction.opcode, *instruction.modifiers))
    operands = _print_list(instruction.operands)
    return f"{guard}{opcode} {operands}".rstrip() + ";"

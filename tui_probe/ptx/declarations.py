"""Parse variable declarations and function headers.

PTX ISA reference, sections 5.1 (state spaces), 5.2 (types), 5.4 (variables), 7.1 (parameters).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.errors import PtxError
from tui_probe.ptx.constants import ConstantReader, Integer, NotConstantError
from tui_probe.ptx.lexer import LineCounter, Token, TokenKind
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Function, Span, Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

SPACES: Final = frozenset({"reg", "sreg", "const", "global", "local", "param", "shared", "tex"})
LINKAGES: Final = frozenset({"extern", "visible", "weak", "common"})
_VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_TYPES_OF_BITS: Final = {
    8: "b8 u8 s8 e4m3 e5m2",
    16: "b16 u16 s16 f16 bf16 e4m3x2 e5m2x2",
    32: "b32 u32 s32 f32 f16x2 bf16x2 tf32 u16x2 s16x2",
    64: "b64 u64 s64 f64 f32x2",
    128: "b128",
}
_BITS: Final = {name: bits for bits, names in _TYPES_OF_BITS.items() for name in names.split()}


class NotDeclarationError(Exception):
    """The tokens are not a declaration that the tree has a node for."""


@dataclass(slots=True)
class _DeclarationHead:
    """Part before the names, common to all of them."""

    space: str = ""
    type: str = ""
    align: int = 0
    vector: int = 1
    linkage: str = ""


class _DeclarationReader:
    """Reads declarations from tokens; ``source`` gives the text of initialisers."""

    def __init__(self, source: str, tokens: Sequence[Token], span: Span) -> None:
        self._source = source
        self._tokens = tokens
        self._span = span
        self._position = 0

    def variables(self) -> list[Variable]:
        head = self._head()
        variables = [self._variable(head)]
        while self._accept(","):
            variables.append(self._variable(head))
        if self._position != len(self._tokens):
            raise NotDeclarationError
        return variables

    def _peek(self, ahead: int = 0) -> str:
        index = self._position + ahead
        return self._tokens[index].text if index < len(self._tokens) else ""

    def _take(self, kind: TokenKind) -> str:
        if self._position == len(self._tokens) or self._tokens[self._position].kind is not kind:
            raise NotDeclarationError
        self._position += 1
        return self._tokens[self._position - 1].text

    def _accept(self, text: str) -> bool:
        if self._peek() != text:
            return False
        self._position += 1
        return True

    def _integer(self) -> int:
        value = parse_integer(self._take(TokenKind.NUMBER))
        if value is None:
            raise NotDeclarationError
        return value

    def _head(self) -> _DeclarationHead:
        head = _DeclarationHead()
        while self._peek().startswith("."):
            word = self._take(TokenKind.DOTTED)[1:]
            if word in LINKAGES:
                head.linkage = word
            elif word == "align":
                head.align = self._integer()
            elif word in _VECTORS:
                head.vector = _VECTORS[word]
            elif word == "attribute":
                self._skip_parentheses()
            elif word == "ptr":
                self._skip_pointee()
            elif not head.space and word.partition("::")[0] in SPACES:
                head.space = word
            elif not head.type:
                head.type = word
            else:
                raise NotDeclarationError
        if not head.space or not head.type:
            raise NotDeclarationError
        return head

    def _skip_pointee(self) -> None:
        """Read ``.ptr``, facts of the object pointed to: its state space and alignment."""
        if self._peek()[1:] in SPACES:
            self._position += 1
        if self._accept(".align"):
            self._integer()

    def _skip_parentheses(self) -> None:
        if not self._accept("("):
            raise NotDeclarationError
        depth = 1
        while depth:
            text = self._peek()
            if not text:
                raise NotDeclarationError
            depth += (text == "(") - (text == ")")
            self._position += 1

    def _variable(self, head: _DeclarationHead) -> Variable:
        name = self._take(TokenKind.NAME)
        count = 0
        if self._accept("<"):
            count = self._integer()
            if not self._accept(">"):
                raise NotDeclarationError
        shape = self._shape()
        initializer = self._initializer() if self._accept("=") else ""
        bits = 0 if head.space in ("reg", "sreg") else _BITS.get(head.type, 0)
        size = bits // 8 * head.vector * prod(shape)
        return Variable(
            head.space,
            head.type,
            name,
            self._span,
            align=head.align,
            vector=head.vector,
            count=count,
            shape=tuple(shape),
            is_array=bool(shape),
            initializer=initializer,
            linkage=head.linkage,
            size_bytes=size,
        )

    def _shape(self) -> list[int]:
        shape = []
        while self._accept("["):
            if self._accept("]"):
                shape.append(0)
                continue
            shape.append(self._extent())
            if not self._accept("]"):
                raise NotDeclarationError
        return shape

    def _extent(self) -> int:
        """Return the value of a constant expression, ``4 * 32``."""
        reader = ConstantReader(self._tokens, self._position)
        try:
            value = reader.expression()
        except NotConstantError:
            raise NotDeclarationError from None
        if not isinstance(value, Integer) or value.value < 0:
            raise NotDeclarationError
        self._position = reader.position
        return value.value

    def _initializer(self) -> str:
        """Return the source text up to the next comma outside brackets."""
        start = self._position
        depth = 0
        while (text := self._peek()) and (depth or text != ","):
            depth += (text in ("{", "(", "[")) - (text in ("}", ")", "]"))
            self._position += 1
        if self._position == start:
            raise NotDeclarationError
        return self._source[self._tokens[start].start : self._tokens[self._position - 1].end]


def parse_variables(source: str, tokens: Sequence[Token], span: Span) -> list[Variable]:
    """Return the variables of one declaration.

    ``tokens`` are those of the statement without its semicolon; all variables share ``span``.
    Raises NotDeclarationError.
    """
    return _DeclarationReader(source, tokens, span).variables()


# Function headers: what is between ``.entry`` or ``.func`` and the body.
#
# PTX ISA reference, sections 11.1 (kernels and functions), 11.4 (performance directives).

_HEADER_ENDS: Final = ("{", ";", "")


class _HeaderReader:
    """Reads one header from its tokens."""

    def __init__(self, source: str, tokens: Sequence[Token], lines: LineCounter) -> None:
        self._source = source
        self._tokens = tokens
        self._lines = lines
        self._position = 0
        self._line = lines.line_at(tokens[0].start)

    def function(self) -> Function:
        linkage = ""
        while self._peek()[1:] in LINKAGES:
            linkage = self._take()[1:]
        kind = self._kind()
        attributes = self._attributes()
        returns = self._parameters() if self._peek() == "(" else []
        if self._position == len(self._tokens) or self._tokens[self._position].kind is not TokenKind.NAME:
            raise PtxError(f"a name is missing in this .{kind}", self._line)
        name = self._take()
        parameters = self._parameters() if self._peek() == "(" else []
        attributes |= self._attributes()
        if self._peek() not in _HEADER_ENDS:
            raise PtxError(f"unexpected {self._peek()!r} in the header of {name}", self._line)
        span = Span(self._tokens[0].start, self._tokens[-1].end, self._line)
        return Function(kind, name, parameters, span, returns, linkage, attributes)

    def _kind(self) -> Literal["entry", "func"]:
        word = self._take()
        if word not in (".entry", ".func"):
            raise PtxError(f"unexpected {word} before a function", self._line)
        return "entry" if word == ".entry" else "func"

    def _peek(self) -> str:
        return self._tokens[self._position].text if self._position < len(self._tokens) else ""

    def _take(self) -> str:
        self._position += 1
        return self._tokens[self._position - 1].text

    def _parameters(self) -> list[Variable]:
        """Return the parameters of a list in parentheses."""
        parameters: list[Variable] = []
        depth = 0
        start = self._position + 1
        while text := self._peek():
            depth += (text == "(") - (text == ")")
            if depth == 0 or (depth == 1 and text == ","):
                parameters += self._parameter(self._tokens[start : self._position])
                start = self._position + 1
            self._position += 1
            if depth == 0:
                return parameters
        raise PtxError("this parameter list is not closed", self._line)

    def _parameter(self, tokens: Sequence[Token]) -> list[Variable]:
        if not tokens:
            return []
        span = Span(tokens[0].start, tokens[-1].end, self._lines.line_at(tokens[0].start))
        try:
            return parse_variables(self._source, tokens, span)
        except NotDeclarationError:
            text = self._source[span.start : span.end]
            raise PtxError(f"this is not a parameter: {text}", span.line) from None

    def _attributes(self) -> dict[str, str]:
        """Directives with the text of their arguments."""
        attributes: dict[str, str] = {}
        while self._peek() not in _HEADER_ENDS and self._tokens[self._position].kind is TokenKind.DOTTED:
            name = self._take()[1:]
            arguments = self._parenthesised_text() if name == "attribute" else self._arguments()
            attributes[name] = f"{attributes[name]}, {arguments}" if name in attributes else arguments
            if name == "pragma" and self._peek() == ";":
                self._position += 1
        return attributes

    def _arguments(self) -> str:
        """Return the text up to the next directive."""
        start = self._position
        while self._peek() not in _HEADER_ENDS and self._tokens[self._position].kind is not TokenKind.DOTTED:
            self._position += 1
        return self._text(start)

    def _parenthesised_text(self) -> str:
        """Return the text of a list in parentheses, with them."""
        start = self._position
        depth = 0
        while (text := self._peek()) and (depth or text == "("):
            depth += (text == "(") - (text == ")")
            self._position += 1
            if depth == 0:
                break
        return self._text(start)

    def _text(self, start: int) -> str:
        if start == self._position:
            return ""
        return self._source[self._tokens[start].start : self._tokens[self._position - 1].end]


def parse_header(source: str, tokens: Sequence[Token], lines: LineCounter) -> Function:
    """Return the function whose header ``tokens`` are, linkage first, without its body's brace.

    Raises PtxError.
    """
    return _HeaderReader(source, tokens, lines).function()

"""Function headers: what stands between ``.entry`` or ``.func`` and the body.

PTX ISA reference, sections 11.1 (kernels and functions), 11.4 (performance directives).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tui_probe.errors import PtxError
from tui_probe.ptx.declarations import LINKAGES, NotDeclarationError, parse_variables
from tui_probe.ptx.lexer import Kind, Lines, Token
from tui_probe.ptx.tree import Function, Span, Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENDS: Final = ("{", ";", "")


class _Header:
    """Reads one header from its tokens."""

    def __init__(self, source: str, tokens: Sequence[Token], lines: Lines) -> None:
        self._source = source
        self._tokens = tokens
        self._lines = lines
        self._next = 0
        self._line = lines.at(tokens[0].start)

    def function(self) -> Function:
        linkage = ""
        while self._peek()[1:] in LINKAGES:
            linkage = self._take()[1:]
        kind = self._kind()
        attributes = self._attributes()
        returns = self._parameters() if self._peek() == "(" else []
        if self._next == len(self._tokens) or self._tokens[self._next].kind is not Kind.NAME:
            raise PtxError(f"a name is missing in this .{kind}", self._line)
        name = self._take()
        parameters = self._parameters() if self._peek() == "(" else []
        attributes |= self._attributes()
        if self._peek() not in _ENDS:
            raise PtxError(f"unexpected {self._peek()!r} in the header of {name}", self._line)
        span = Span(self._tokens[0].start, self._tokens[-1].end, self._line)
        return Function(kind, name, parameters, span, returns, linkage, attributes)

    def _kind(self) -> Literal["entry", "func"]:
        word = self._take()
        if word not in (".entry", ".func"):
            raise PtxError(f"unexpected {word} before a function", self._line)
        return "entry" if word == ".entry" else "func"

    def _peek(self) -> str:
        return self._tokens[self._next].text if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1].text

    def _parameters(self) -> list[Variable]:
        """A list in parentheses."""
        found: list[Variable] = []
        depth = 0
        first = self._next + 1
        while text := self._peek():
            depth += (text == "(") - (text == ")")
            if depth == 0 or (depth == 1 and text == ","):
                found += self._parameter(self._tokens[first : self._next])
                first = self._next + 1
            self._next += 1
            if depth == 0:
                return found
        raise PtxError("this parameter list is not closed", self._line)

    def _parameter(self, tokens: Sequence[Token]) -> list[Variable]:
        if not tokens:
            return []
        span = Span(tokens[0].start, tokens[-1].end, self._lines.at(tokens[0].start))
        try:
            return parse_variables(self._source, tokens, span)
        except NotDeclarationError:
            text = self._source[span.start : span.end]
            raise PtxError(f"this is no parameter: {text}", span.line) from None

    def _attributes(self) -> dict[str, str]:
        """Directives with the text of their arguments."""
        found: dict[str, str] = {}
        while self._peek() not in _ENDS and self._tokens[self._next].kind is Kind.DOTTED:
            name = self._take()[1:]
            arguments = self._in_parentheses() if name == "attribute" else self._arguments()
            found[name] = f"{found[name]}, {arguments}" if name in found else arguments
            if name == "pragma" and self._peek() == ";":
                self._next += 1
        return found

    def _arguments(self) -> str:
        """The text up to the next directive."""
        first = self._next
        while self._peek() not in _ENDS and self._tokens[self._next].kind is not Kind.DOTTED:
            self._next += 1
        return self._text(first)

    def _in_parentheses(self) -> str:
        """The text of a list in parentheses, with them."""
        first = self._next
        depth = 0
        while (text := self._peek()) and (depth or text == "("):
            depth += (text == "(") - (text == ")")
            self._next += 1
            if depth == 0:
                break
        return self._text(first)

    def _text(self, first: int) -> str:
        if first == self._next:
            return ""
        return self._source[self._tokens[first].start : self._tokens[self._next - 1].end]


def parse_header(source: str, tokens: Sequence[Token], lines: Lines) -> Function:
    """The function whose header ``tokens`` are, linkage first, without its body's brace.

    Raises PtxError.
    """
    return _Header(source, tokens, lines).function()

"""PTX text to the syntax tree.

A module is cut into its top-level items first; a body is found by its braces and parsed when it is asked for.
PTX ISA reference, sections 4.3 (statements), 11 (directives).
"""

from __future__ import annotations

import re
from typing import Final

from tui_probe.errors import PtxError
from tui_probe.ptx.body import parse_body
from tui_probe.ptx.declarations import LINKAGES, SPACES, NotDeclarationError, parse_header, parse_variables
from tui_probe.ptx.lexer import (
    COMMENT,
    SOURCE_TEXT,
    STRING,
    LineCounter,
    Token,
    TokenKind,
    line_of,
    raise_bad_token,
    skip_trivia,
    tokenize,
    whole_number,
)
from tui_probe.ptx.tree import Directive, Function, Module, Span, Statement, TopLevel

_NO_BRACE: Final = r"[^{}\"/]*+"
_TO_BRACE: Final = re.compile(rf"{_NO_BRACE}(?:(?:{STRING}|{COMMENT}|/(?!\*)){_NO_BRACE}|)*+(.)")
_NO_DOT: Final = r"[^{}\"/.]*+"
_TO_BRACE_OF_SECTION: Final = re.compile(
    rf"{_NO_DOT}(?:(?:{STRING}|{COMMENT}|{SOURCE_TEXT}|/(?!\*)|\.){_NO_DOT}|)*+(.)"
)
"""Bodies have no ``.source_begin``, and such a number of dots that looking for one would take a third of the parser's
time.
"""
_STARTS_ITEM: Final = frozenset(
    f".{name}"
    for name in (
        *LINKAGES,
        *SPACES,
        *("entry", "func", "alias", "file", "section", "nv_intermediate_source_section"),
        *("version", "target", "address_size"),
    )
)
"""Start of a module's next item, which ends a declaration of a function that lacks its semicolon."""
_FIELDS: Final = ("kind", "name", "parameters", "span", "returns", "linkage", "attributes", "body_span")


class _LazyFunction(Function):
    """A function whose body is parsed when it is first asked for."""

    __slots__ = ("_source",)
    _source: str

    @classmethod
    def from_function(cls, function: Function, source: str) -> _LazyFunction:
        lazy = cls.__new__(cls)
        for name in _FIELDS:
            setattr(lazy, name, getattr(function, name))
        lazy._source = source
        return lazy

    def __getattr__(self, name: str) -> list[Statement]:
        # Python comes here for a slot without a value: the body before its first use.
        if name != "body" or self.body_span is None:
            raise AttributeError(name)
        self.body = parse_body(self._source, self)
        return self.body


class _ModuleParser:
    """Cuts a module into its top-level items."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = LineCounter(source)
        self._position = 0
        self._items: list[TopLevel] = []
        self._version: tuple[int, int] | None = None
        self._target = ""
        self._address_size = 64
        self._files: dict[int, str] = {}

    def parse(self) -> Module:
        end = len(self._source)
        while (start := skip_trivia(self._source, self._position, end)) < end:
            token = next(tokenize(self._source, start))
            if token.kind is not TokenKind.DOTTED and token.text != "@":
                raise PtxError(f"expected a directive, found {token.text!r}", line_of(self._source, start))
            if self._version is None and token.text != ".version":
                raise PtxError("PTX begins with .version", line_of(self._source, start))
            self._item(token)
        if self._version is None:
            raise PtxError("no .version directive: this is not PTX")
        return Module(self._source, self._version, self._target, self._address_size, self._items, self._files)

    def _item(self, token: Token) -> None:
        name = token.text[1:]
        if name in LINKAGES or name in SPACES or name in ("entry", "func"):
            self._declaration(token.start)
            return
        match name:
            case "section" | "nv_intermediate_source_section":
                tokens = self._to_block(token.start)
            case "alias" | "pragma":
                tokens = self._to_semicolon(token.start)
            case "":
                tokens = self._to_line_end(token.start)
            case _:
                tokens = self._to_next(token.start)
        start, end = token.start, tokens[-1].end
        self._position = end
        self._items.append(Directive(name, self._source[start:end], Span(start, end, self._lines.line_at(start))))
        self._note(name, tokens[1:])

    def _note(self, name: str, arguments: list[Token]) -> None:
        """Keep what the module says of itself."""
        texts, line = [token.text for token in arguments], self._lines.line_at(self._position)
        match name, texts:
            case "version", [version] if version.count(".") == 1 and version.replace(".", "").isdecimal():
                major, minor = version.split(".")
                self._version = whole_number(major, line), whole_number(minor or "0", line)
            case "version", _:
                raise PtxError("no version number after .version", line)
            case "target", [target, *_]:
                self._target = target
            case "address_size", [("32" | "64") as size]:
                self._address_size = int(size)
            case "file", [number, path, *_] if number.isdecimal() and path[0] == '"':
                self._files[whole_number(number, line)] = path[1:-1]

    def _declaration(self, start: int) -> None:
        """A function or variables, linkage first."""
        tokens: list[Token] = []
        for token in tokenize(self._source, start):
            if token.text in (".entry", ".func"):
                self._function(start)
                return
            tokens.append(token)
            if token.kind is not TokenKind.DOTTED:
                break
        tokens = self._to_semicolon(start)
        span = Span(start, tokens[-1].end, self._lines.line_at(start))
        self._position = span.end
        try:
            self._items += parse_variables(self._source, tokens[:-1], span)
        except NotDeclarationError:
            self._items.append(Directive(tokens[0].text[1:], self._source[start : span.end], span))

    def _function(self, start: int) -> None:
        tokens, end = self._header(start)
        function = parse_header(self._source, tokens, self._lines)
        if end is not None:
            function.span.end = end.end
        if end is not None and end.text == "{":
            function.span.end = self._closing_brace(end.start, _TO_BRACE)
            function.body_span = Span(end.start, function.span.end, self._lines.line_at(end.start))
            function = _LazyFunction.from_function(function, self._source)
        self._position = function.span.end
        self._items.append(function)

    def _header(self, start: int) -> tuple[list[Token], Token | None]:
        """Return the tokens of a function header, and the ``{`` or ``;`` that ends it; None if a ``.func`` lacks it."""
        tokens: list[Token] = []
        depth = 0
        is_named = False
        for token in tokenize(self._source, start):
            if token.text == "{" or (token.text == ";" and not _in_pragma(tokens)):
                return tokens, token
            if is_named and not depth and (token.text in _STARTS_ITEM or token.text == "@"):
                break
            depth += (token.text == "(") - (token.text == ")")
            is_named = is_named or (token.kind is TokenKind.NAME and not depth)
            tokens.append(token)
        if not is_named or depth or not any(token.text == ".func" for token in tokens):
            raise PtxError("this function has no body and no ';'", line_of(self._source, start))
        return tokens, None

    def _closing_brace(self, opening: int, to_brace: re.Pattern[str]) -> int:
        """Return the index behind the brace that closes the one at ``opening``."""
        depth = 0
        position = opening
        while match := to_brace.match(self._source, position):
            position = match.end()
            if match[1] == "{":
                depth += 1
            elif match[1] == "}":
                depth -= 1
                if depth == 0:
                    return position
            else:
                raise_bad_token(self._source, match.start(1))
        raise PtxError("this '{' is not closed", line_of(self._source, opening))

    def _block(self, opening: int) -> Token:
        """Return the text from the brace at ``opening`` to its end, as one token."""
        text = self._source[opening : self._closing_brace(opening, _TO_BRACE_OF_SECTION)]
        return Token(TokenKind.PUNCTUATION, text, opening)

    def _to_semicolon(self, start: int) -> list[Token]:
        """Return the tokens of a statement, its semicolon included. A block in braces is one token."""
        tokens: list[Token] = []
        position = start
        while token := next(tokenize(self._source, position), None):
            if token.text == "}":
                break
            if token.text == "{":
                token = self._block(token.start)
            tokens.append(token)
            if token.text == ";":
                return tokens
            position = token.end
        raise PtxError("this statement is not closed by ';'", line_of(self._source, start))

    def _to_block(self, start: int) -> list[Token]:
        """Return the tokens of a directive that ends with a block in braces, the block being the last token."""
        tokens: list[Token] = []
        for token in tokenize(self._source, start):
            if token.text == "{":
                tokens.append(self._block(token.start))
                return tokens
            tokens.append(token)
        raise PtxError("this directive has no block in braces", line_of(self._source, start))

    def _to_next(self, start: int) -> list[Token]:
        """Return the tokens of a directive without terminator: up to the next one, or to ``;`` or a block in braces."""
        tokens: list[Token] = []
        for token in tokenize(self._source, start):
            if tokens and (token.kind is TokenKind.DOTTED or token.text == "@"):
                break
            if token.text == "}":
                raise PtxError("this '}' closes nothing", line_of(self._source, token.start))
            tokens.append(self._block(token.start) if token.text == "{" else token)
            if token.text in ("{", ";"):
                break
        return tokens

    def _to_line_end(self, start: int) -> list[Token]:
        """Return the tokens of an ``@@DWARF`` line, the debug information of old compilers."""
        tokens: list[Token] = []
        for token in tokenize(self._source, start):
            if tokens and "\n" in self._source[tokens[-1].end : token.start]:
                break
            tokens.append(token)
        return tokens


def _in_pragma(tokens: list[Token]) -> bool:
    """Return whether the tokens end inside a ``.pragma`` of a function header."""
    for token in reversed(tokens):
        if token.kind is TokenKind.DOTTED:
            return token.text == ".pragma"
    return False


def parse(source: str) -> Module:
    """Parse one PTX module.

    Bodies are parsed when ``Function.body`` is first read. Raises PtxError, with the line, for text that is not
    PTX or is cut off: there and, for damage inside a body, where the body is read.
    """
    return _ModuleParser(source).parse()

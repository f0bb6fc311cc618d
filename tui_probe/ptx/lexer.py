"""Tokens of PTX, and the target and kernel names of a PTX text, found without parsing it.

The fragments below are the only definition of comments, strings, names and numbers: the parser's
faster patterns are built from them, so that both always agree on where a token ends.
A possessive group has an empty last alternative, ``(?:…|)*+``, so that no attempt fails: Python before 3.11.5, such as
Debian 12's, takes what a failed attempt has read for a part of the match. ``(?>(?:…)*)`` takes memory per repetition.
PTX ISA reference, sections 4.1 to 4.5.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from tui_probe.errors import PtxError

if TYPE_CHECKING:
    from collections.abc import Iterator

SPACE: Final = r"[ \t\r\n\f\v]"
COMMENT: Final = r"//[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+|)*+\*/"
TRIVIA: Final = rf"(?:{SPACE}++|{COMMENT}|)*+"
STRING: Final = r'"[^"]*+"'
"""Pattern of a string in ptxas: a backslash is an ordinary character, and a line break may be inside."""
_SOURCE_END: Final = r"[ \t]*+\.source_end[ \t\r]*+(?=\n|\Z)"
SOURCE_TEXT: Final = rf"\.source_begin[ \t\r]*+\n(?:(?!{_SOURCE_END})[^\n]*+\n|)*+(?>{_SOURCE_END}|[^\n]*+)"
"""Text of another language, from the line ``.source_begin`` to the next line ``.source_end``: any characters."""
NAME: Final = r"(?>[A-Za-z][A-Za-z0-9_$]*+|[_$%][A-Za-z0-9_$]*+)"
DOTTED: Final = r"\.[A-Za-z0-9_$]++(?:::[A-Za-z0-9_$]++|)*+"
NUMBER: Final = (
    r"(?>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]++U?|0[bB][01]++U?"
    r"|[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++|[0-9]++U?)"
)
_TOKEN: Final = re.compile(
    rf"{TRIVIA}(?:({NAME})|({DOTTED})|({NUMBER})|({STRING})|(?!/\*)([^ \t\r\n\f\v\"]))",
)
_TRIVIA: Final = re.compile(TRIVIA)
_MAX_DIGITS: Final = 18
"""Decimal digits that surely fit into 64 bits."""


class TokenKind(IntEnum):
    """The kinds of token; the values are the groups of the lexer's pattern."""

    NAME = 1
    """A name: ``foo``, ``%r1``, ``$L__BB0_1``, ``_$_str``, ``_``."""
    DOTTED = 2
    """A directive or modifier with its dot: ``.reg``, ``.shared::cluster``."""
    NUMBER = 3
    """A literal without sign: ``16``, ``0x1FU``, ``0f3F800000``, ``1.5``."""
    STRING = 4
    """A string with its quotes."""
    PUNCTUATION = 5
    """Any other single character."""


class Token(NamedTuple):
    """One token and the index of its first character in the source."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """Index after the last character."""
        return self.start + len(self.text)


_KINDS: Final = (TokenKind.NAME, *TokenKind)


def whole_number(digits: str, line: int) -> int:
    """Return the value of decimal digits. PtxError where they are more than a number of PTX has."""
    if len(digits) > _MAX_DIGITS:
        raise PtxError(f"a number has {len(digits)} digits, which PTX does not support", line)
    return int(digits)


def line_of(source: str, position: int) -> int:
    """Return the 1-based line of a character."""
    return source.count("\n", 0, position) + 1


def skip_trivia(source: str, position: int, end: int) -> int:
    """Return the index of the first character from ``position`` on that is neither white space nor comment."""
    match = _TRIVIA.match(source, position, end)
    return match.end() if match else position


def tokenize(source: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """Yield the tokens of ``source[start:end]``.

    Raises PtxError for a string or a comment that does not end.
    """
    stop = len(source) if end is None else end
    position = start
    while match := _TOKEN.match(source, position, stop):
        index = match.lastindex or 0
        position = match.end()
        yield Token(_KINDS[index], match[index], match.start(index))
    position = skip_trivia(source, position, stop)
    if position < stop:
        raise_bad_token(source, position)


def raise_bad_token(source: str, position: int) -> NoReturn:
    """Raise the PtxError for the comment or the string at ``position``, which does not end."""
    fault = "string is not closed" if source[position] == '"' else "comment is not closed by */"
    raise PtxError(f"this {fault}", line_of(source, position))


class LineCounter:
    """Line numbers of positions that are asked for in rising order, each found from the one before."""

    def __init__(self, source: str, position: int = 0, line: int = 1) -> None:
        self._source = source
        self._position = position
        self._line = line

    def line_at(self, position: int) -> int:
        """Return the 1-based line of a character that is not before the last one asked for."""
        self._line += self._source.count("\n", self._position, position)
        self._position = position
        return self._line


# The target of PTX text and the names of its kernels, found without parsing it.
#
# Comments, strings and text of other languages are not PTX: a ``.entry`` or a ``.target`` in them counts for nothing.

_PTX_START: Final = re.compile(rf"{TRIVIA}\.version(?![A-Za-z0-9_$])")
_TARGET_DIRECTIVE: Final = re.compile(
    rf"{TRIVIA}\.version{TRIVIA}[0-9.]*+{TRIVIA}\.target{TRIVIA}sm_([0-9]{{1,9}})([a-z]?)"
)
_UNCLOSED: Final = r"(?:/\*|\")(?s:.*)"
_ENTRY_NAME: Final = re.compile(rf"{COMMENT}|{STRING}|{_UNCLOSED}|{SOURCE_TEXT}|\.entry{TRIVIA}({NAME})")


class PtxTarget(NamedTuple):
    """``.target sm_90a``: ``arch`` is 90, ``suffix`` is ``a`` for one generation, ``f`` for a family, or ""."""

    arch: int
    suffix: str

    def __str__(self) -> str:
        return f"sm_{self.arch}{self.suffix}"


def is_ptx(text: str) -> bool:
    """Return whether the text begins as PTX does."""
    return _PTX_START.match(text) is not None


def ptx_target(text: str) -> PtxTarget | None:
    """Return the target that the first lines name; None where they name none."""
    match = _TARGET_DIRECTIVE.match(text)
    return PtxTarget(int(match[1]), match[2]) if match else None


def kernel_names(text: str) -> dict[str, None]:
    """Return the names of the kernels, in order."""
    return dict.fromkeys(match[1] for match in _ENTRY_NAME.finditer(text) if match[1])

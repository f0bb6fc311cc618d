"""Patterns of lines of ``event.log``, the pieces that they are made of, and what their words mean."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.reasons import read_reason
from tui_probe.trace.event_types import Trouble
from tui_probe.trace.plain_file import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.reasons import Reason
    from tui_probe.trace.event_types import Event
    from tui_probe.trace.launch_shape import Shape

Match: TypeAlias = re.Match[bytes]
Reader: TypeAlias = "tuple[Pattern, Callable[[Match], Event]]"
Readers: TypeAlias = "dict[bytes, tuple[Reader, ...]]"
"""Second word of a line, or ``*`` for any other -> the patterns to try from that word on, and what they build."""

_U32: Final = 0xFFFFFFFF

# Pieces of the grammar. Digits are bounded, so that every number fits a 64-bit column, and a number ends with its word,
# so that one with another line's text behind it is not taken for a whole one.
_PIECES: Final = {
    "COUNT": r"(\d{1,18})(?!\S)",
    "MAYBE": r"(\d{1,18}|-)(?!\S)",
    "INDEX": r"(\d{1,9})(?!\S)",
    "CODE": r"(-?\d{1,9})(?!\S)",
    "NS": r"(\d{1,19})(?!\S)",
    "POINTER": r"(?:0x)?([0-9a-fA-F]{1,16}|\(nil\))",
    "SHAPE": r"(\d{1,10} \d{1,10} \d{1,10} block \d{1,10} \d{1,10} \d{1,10} shared \d{1,18})(?!\S)",
    "MS": r"(-?\d{1,18}(?:\.\d{0,18})?(?:e[+-]?\d{1,2})?|-?nan|-?inf|-)",
}


@lru_cache(maxsize=8192)
def shape_of(words: bytes) -> Shape:
    """``b"4096 1 1 block 128 1 1 shared 0"`` as numbers, which it is known to be."""
    x, y, z, bx, by, bz, shared = (min(int(word), _U32) for word in words.split() if word.isdigit())
    return x, y, z, bx, by, bz, shared


def maybe_int(word: bytes | None) -> int | None:
    """A decimal number; None for ``-``, and where the line has none."""
    return None if word is None or word == b"-" else int(word)


def maybe_hex(word: bytes | None) -> int | None:
    """An address or handle; None for ``(nil)``, and where the line has none."""
    return None if word is None or word == b"(nil)" else int(word, 16)


def maybe_float(word: bytes | None) -> float | None:
    """Read a number with a fraction; None for ``-`` and for no word."""
    return None if word is None or word == b"-" else float(word)


def maybe_text(word: bytes | None) -> str | None:
    """Read a word; None for ``-`` and for no word."""
    return None if word is None or word == b"-" else text_of(word)


def reason_of(words: bytes | None) -> Reason | None:
    """A reason at the end of a line; None for ``-``, and where the line has none."""
    return None if words is None or words == b"-" else read_reason(text_of(words))


class Pattern:
    """A pattern from a line template: capitals in braces are pieces, two blanks are one or more.

    It is compiled when it is first used: a log has few kinds of lines that are read one by one.
    """

    def __init__(self, template: str) -> None:
        self._template = template

    def match(self, line: bytes, start: int) -> Match | None:
        """Match the rest of the line from there on."""
        return self._compiled.match(line, start)

    @cached_property
    def _compiled(self) -> re.Pattern[bytes]:
        expression = self._template.replace("  ", " +")
        for name, piece in _PIECES.items():
            expression = expression.replace("{" + name + "}", piece)
        return re.compile(expression.encode(), re.DOTALL)


def _trouble(m: Match) -> Event:
    return Trouble(text_of(m.string[m.start() :]))


TROUBLE: Final[tuple[Reader, ...]] = ((Pattern(""), _trouble),)

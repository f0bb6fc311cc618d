"""The target of PTX text and the names of its kernels, found without parsing it.

Comments, strings and text of other languages are not PTX: a ``.entry`` or a ``.target`` in them counts for nothing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tui_probe.ptx.lexer import COMMENT, NAME, SOURCE_TEXT, STRING, TRIVIA

_START: Final = re.compile(rf"{TRIVIA}\.version(?![A-Za-z0-9_$])")
_TARGET: Final = re.compile(rf"{TRIVIA}\.version{TRIVIA}[0-9.]*+{TRIVIA}\.target{TRIVIA}sm_([0-9]{{1,9}})([a-z]?)")
_UNCLOSED: Final = r"(?:/\*|\")(?s:.*)"
_ENTRY: Final = re.compile(rf"{COMMENT}|{STRING}|{_UNCLOSED}|{SOURCE_TEXT}|\.entry{TRIVIA}({NAME})")


class Target(NamedTuple):
    """``.target sm_90a``: ``arch`` is 90, ``suffix`` is ``a`` for one generation, ``f`` for a family, or ""."""

    arch: int
    suffix: str

    def __str__(self) -> str:
        return f"sm_{self.arch}{self.suffix}"


def is_ptx(text: str) -> bool:
    """Whether the text begins as PTX does."""
    return _START.match(text) is not None


def target_of(text: str) -> Target | None:
    """The target that the first lines name; None where they name none."""
    match = _TARGET.match(text)
    return Target(int(match[1]), match[2]) if match else None


def kernel_names(text: str) -> dict[str, None]:
    """The names of the kernels, in order."""
    return dict.fromkeys(match[1] for match in _ENTRY.finditer(text) if match[1])

"""Option ``--max-chars``: output of at most that many characters, and the command that shows the rest."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.char_budget import fit_document, fit_lines, fit_rows
from tui_probe.draw.units import counted

from .output import inform

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

MIN_CHARS: Final = 200
"""Characters that a document with nothing but its schema and the command that shows it may need."""
_OPTION: Final = "--max-chars"


def add_budget_option(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        _OPTION, type=_chars, metavar="N",
        help="write at most N characters: what matters most, and the command that shows the rest",
    )  # fmt: skip


def _chars(word: str) -> int:
    if not re.fullmatch(r"\d{1,12}", word) or int(word) < MIN_CHARS:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of at least {MIN_CHARS}; write 4000")
    return int(word)


def max_chars(arguments: argparse.Namespace) -> int | None:
    """Return the number of characters asked for; None: no limit, also of commands without the option."""
    chars: int | None = getattr(arguments, "max_chars", None)
    return chars


def whole_command(arguments: argparse.Namespace) -> str:
    """Return the command line without the option."""
    arguments_left, kept_arguments = iter(arguments.argv), []
    for word in arguments_left:
        if word == _OPTION:
            next(arguments_left, None)
        elif not word.startswith(f"{_OPTION}="):
            kept_arguments.append(word)
    return shlex.join(["tui-probe", *kept_arguments])


def fitted(lines: Iterable[str], arguments: argparse.Namespace, *, csv: bool = False) -> Iterator[str]:
    """Yield the lines of a text, or of a CSV file, that may be written. What is left out of a CSV is said on stderr."""
    chars = max_chars(arguments)
    if chars is None:
        yield from lines
    elif csv:
        rows, left_out = fit_rows(lines, chars)
        yield from rows
        if left_out:
            inform(f"{counted(left_out, 'row')} omitted; to show all: {whole_command(arguments)}")
    else:
        yield from fit_lines(lines, chars, whole_command(arguments))


def fitted_document(
    document: dict[str, Any], arguments: argparse.Namespace, *, keep: Collection[str] = (), beyond: int = 0
) -> str:
    """Return a document as JSON of at most the characters asked for."""
    chars = max_chars(arguments)
    assert chars is not None
    return fit_document(document, chars - 1, whole_command(arguments), keep=keep, beyond=beyond)

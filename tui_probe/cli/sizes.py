"""Numbers of options: widths and heights of what goes to stdout, and its encoding; processes at a time."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ChoiceError

if TYPE_CHECKING:
    from typing import TextIO

NARROWEST: Final = 40
SHORTEST: Final = 5
MOST_CELLS: Final = 1_000_000
"""Columns times lines of a drawing."""


def speaks_utf8(stream: TextIO) -> bool:
    """Whether any character can be written; data formats are UTF-8 always, tables what the terminal can show."""
    return "utf" in (stream.encoding or "").lower()


def cells(word: str) -> int:
    """A width of tables."""
    return _number(word, NARROWEST)


def rows(word: str) -> int:
    """A height in lines."""
    return _number(word, SHORTEST)


def jobs(word: str) -> int:
    """How many processes may run at a time."""
    return _number(word, 1)


def _number(word: str, least: int) -> int:
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < least:
        raise argparse.ArgumentTypeError(f"{word}: a number of at least {least} was expected")
    return number


def table_width(arguments: argparse.Namespace) -> int:
    """The width asked for, else the terminal's, 120 without one."""
    return arguments.width or max(NARROWEST, shutil.get_terminal_size((120, 24)).columns)


def drawing_size(arguments: argparse.Namespace) -> tuple[int, int]:
    """Columns and lines to draw in."""
    terminal = shutil.get_terminal_size((120, 40))
    height = getattr(arguments, "height", None)
    height = height or (max(SHORTEST, terminal.lines - 1) if sys.stdout.isatty() else 40)
    return arguments.width or max(NARROWEST, terminal.columns), height


def fits(columns: int, height: int) -> None:
    """Raises ChoiceError for a drawing that nobody could read and that takes minutes to make."""
    if columns * height > MOST_CELLS:
        raise ChoiceError(
            f"--width {columns} --height {height}: a drawing has at most {MOST_CELLS:,} characters, such as"
            " 1000 by 1000; --do zoom_in shows a part in more detail"
        )

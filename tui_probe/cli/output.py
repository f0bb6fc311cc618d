"""Output of commands: messages, data, widths, at most ``--max-chars`` characters, progress and exit status."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import select
import shlex
import shutil
import stat
import sys
import time
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Self

from tui_probe.draw import units
from tui_probe.draw.printable import printable, printable_lines
from tui_probe.errors import ChoiceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path
    from typing import TextIO

    from tui_probe.draw.spans import Line

MIN_COLUMNS: Final = 40
"""Columns of tables and drawings at least, also on a terminal that has fewer."""
MIN_LINES: Final = 5
"""Lines of a drawing at least, also on a terminal that has fewer."""
MAX_CELLS: Final = 1_000_000
"""Columns times lines of a drawing at most."""
PROGRESS_INTERVAL = 0.5
"""Seconds of silence at first, and between two messages."""
MIN_CHARS: Final = 200
"""Characters that a document with nothing but its schema and the command that shows it may need."""
_MAX_CHARS_OPTION: Final = "--max-chars"


class ExitStatus(IntEnum):
    """Exit statuses that scripts can distinguish."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_DRIVER = 3
    UNREADABLE_TRACE = 4
    NO_VERDICT = 5
    INTERRUPTED = 130


def write_stdout(text: str | Iterable[str], *, ascii_only: bool = False) -> None:
    """Write text, or lines, to stdout, safe to show with any names in them; in ASCII characters if ``ascii_only``.

    Pieces may hold several lines; a newline is added to each piece that does not end with one.
    """
    for piece in (text,) if isinstance(text, str) else text:
        lines = map(printable, piece.removesuffix("\n").split("\n"))
        sys.stdout.write("\n".join(map(_ascii, lines) if ascii_only else lines) + "\n")


def _ascii(text: str) -> str:
    from tui_probe.draw.spans import to_ascii

    return to_ascii(text)


def write_coloured(lines: Iterable[Line], *, ascii_only: bool = False) -> None:
    """Write lines to stdout, in colours if it is a terminal."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        from tui_probe.draw.spans import plain

        write_stdout((plain(line).rstrip() for line in lines), ascii_only=ascii_only)
        return
    from tui_probe.draw.palette import ANSI

    for line in lines:
        safe_spans = ((_ascii(printable(text)) if ascii_only else printable(text), role) for text, role in line)
        coloured = "".join(ANSI.style(role).render(text) if role else text for text, role in safe_spans)
        sys.stdout.write(f"{coloured.rstrip()}\n")


def shell_word(path: Path) -> str:
    """Quote a path for a command that a user can paste, for ``inform`` and ``warn``, which make it printable.

    Bytes that are not UTF-8 stay, unlike in ``draw.printable.shell_word``.
    """
    return shlex.quote(str(path))


def complain(text: str) -> None:
    """Write why a command ends to stderr."""
    sys.stderr.write(f"tui-probe: error: {printable_lines(text)}\n")


def inform(text: str, descriptor: int = 2) -> None:
    """Write a line to stderr, or to the descriptor that was stderr, without a buffer; errors are ignored."""
    with contextlib.suppress(OSError):
        os.write(descriptor, f"[info] {_printable(text)}\n".encode(errors="surrogateescape"))


def warn(text: str) -> None:
    """Write a problem that does not end the command to stderr; errors of writing are ignored."""
    with contextlib.suppress(OSError):
        os.write(2, f"tui-probe: {_printable(text)}\n".encode(errors="surrogateescape"))


def _printable(text: str) -> str:
    """Return the text without control characters. Bytes that are not UTF-8 stay: scripts find paths of traces in it."""
    return printable_lines(text, raw_bytes=True)


def seek_stdout_to_end() -> None:
    """Move stdout to the end of its file: the program, which shares its position, may have moved it back."""
    with contextlib.suppress(OSError):  # a pipe or a terminal
        os.lseek(1, 0, os.SEEK_END)


def discard_output() -> None:
    """Replace stdout by /dev/null when its reader has left, as ``head`` does: at its end, Python flushes it and would
    report the error.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def close_lost_terminal() -> None:
    """Replace descriptors of a terminal that hung up by /dev/null, after a screen."""
    poll = select.poll()
    for descriptor in range(3):
        poll.register(descriptor, 0)  # without events, poll reports hang-ups and errors only
    for descriptor, _ in poll.poll(0):
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)


def on_terminal() -> bool:
    """Return whether a screen can be shown: a terminal at every end, which can place text."""
    return all(os.isatty(descriptor) for descriptor in range(3)) and os.environ.get("TERM", "dumb") != "dumb"


def is_utf8(stream: TextIO) -> bool:
    """Return whether any character can be written; data is always UTF-8, tables are what the terminal can show."""
    return "utf" in (stream.encoding or "").lower()


def width_option(word: str) -> int:
    """Read a width of tables."""
    return number_from(word, MIN_COLUMNS)


def height_option(word: str) -> int:
    """Read a height in lines."""
    return number_from(word, MIN_LINES)


def number_from(word: str, minimum: int) -> int:
    """Read the value of an option. Raises ArgumentTypeError if it is not a number of at least ``minimum``."""
    try:
        number = int(word)
    except ValueError:
        number = 0
    if number < minimum:
        raise argparse.ArgumentTypeError(f"{word}: pass a number, at least {minimum}")
    return number


def terminal_size(usual: tuple[int, int] = (120, 24)) -> os.terminal_size:
    """Return the size of the terminal of stdout, of that of a pager behind a pipe, else ``usual``."""
    with contextlib.suppress(OSError, ValueError):
        if stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode):
            usual = os.get_terminal_size(sys.stderr.fileno())
    return shutil.get_terminal_size(usual)


def table_width(arguments: argparse.Namespace) -> int:
    """The width asked for, else the terminal's, 120 without one."""
    return arguments.width or max(MIN_COLUMNS, terminal_size().columns)


def drawing_size(arguments: argparse.Namespace) -> tuple[int, int]:
    """Columns and lines to draw in."""
    terminal = terminal_size((120, 40))
    height = getattr(arguments, "height", None)
    height = height or (max(MIN_LINES, terminal.lines - 1) if sys.stdout.isatty() else 40)
    return arguments.width or max(MIN_COLUMNS, terminal.columns), height


def check_drawing_size(columns: int, height: int) -> None:
    """Raise ChoiceError for a drawing that no one could read and that takes minutes to make."""
    if columns * height > MAX_CELLS:
        raise ChoiceError(
            f"--width {columns} --height {height}: a drawing has at most {MAX_CELLS:,} characters, such as"
            " 1000 by 1000; --do zoom_in shows a part in more detail"
        )


class Progress:
    """Called with the share that is done, from 0 to 1; says that, and how long the rest will take at this pace."""

    def __init__(self, activity: str = "reading") -> None:
        self._activity = activity
        self._start = time.monotonic()
        self._next_message = self._start + PROGRESS_INTERVAL if os.isatty(2) else float("inf")
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if now >= self._next_message:
            self._next_message = now + PROGRESS_INTERVAL
            self._is_shown = True
            sys.stderr.write(
                f"\r[info] {self._activity}: {share:4.0%}{units.eta_suffix(share, now - self._start)}\x1b[K"
            )
            sys.stderr.flush()

    def erase_before(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines; on the terminal of the progress text, erase this before the first one."""
        for line in lines:
            if os.isatty(1):
                self._end()
            yield line

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._is_shown, self._next_message = False, float("inf")


def add_max_chars_option(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--max-chars``."""
    parser.add_argument(
        _MAX_CHARS_OPTION, type=_chars, metavar="N",
        help="write at most N characters: the most important lines, and the command that shows all lines",
    )  # fmt: skip


def _chars(word: str) -> int:
    if not re.fullmatch(r"\d{1,12}", word) or int(word) < MIN_CHARS:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of at least {MIN_CHARS}, such as 4000")
    return int(word)


def max_chars(arguments: argparse.Namespace) -> int | None:
    """Return the number of characters asked for; None: no limit, also of commands without the option."""
    chars: int | None = getattr(arguments, "max_chars", None)
    return chars


def command_without_max_chars(arguments: argparse.Namespace) -> str:
    """Return the command line without ``--max-chars`` and its number."""
    arguments_left, kept_arguments = iter(arguments.argv), []
    for word in arguments_left:
        if word == _MAX_CHARS_OPTION:
            next(arguments_left, None)
        elif not word.startswith(f"{_MAX_CHARS_OPTION}="):
            kept_arguments.append(word)
    return shlex.join(["tui-probe", *kept_arguments])


def limit_lines(lines: Iterable[str], arguments: argparse.Namespace, *, csv: bool = False) -> Iterator[str]:
    """Yield the lines of a text, or of a CSV file, that may be written. What is left out of a CSV is said on stderr."""
    from tui_probe.draw.char_budget import fit_lines, fit_rows

    chars = max_chars(arguments)
    if chars is None:
        yield from lines
    elif csv:
        rows, left_out = fit_rows(lines, chars)
        yield from rows
        if left_out:
            inform(f"{units.counted(left_out, 'row')} omitted; to show all: {command_without_max_chars(arguments)}")
    else:
        yield from fit_lines(lines, chars, command_without_max_chars(arguments))


def limited_json(
    document: dict[str, Any], arguments: argparse.Namespace, *, keep: Collection[str] = (), omitted_rows: int = 0
) -> str:
    """Return a document as JSON of at most the characters asked for."""
    from tui_probe.draw.char_budget import fit_document

    chars = max_chars(arguments)
    assert chars is not None
    return fit_document(
        document, chars - 1, command_without_max_chars(arguments), kept_fields=keep, omitted_rows=omitted_rows
    )

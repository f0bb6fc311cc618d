"""The copies of source files in a trace: the text behind the lines that ``source_lines`` names.

They are made while the program runs, since a trace is read later and elsewhere, and no path in it is ever followed out
of it: ``source/DIGEST_NAME``, with the first digits of the SHA-1 of the path as the compiler was given it.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tui_probe.input_limits import SOURCE_FILE
from tui_probe.trace.locate import inside
from tui_probe.trace.plain_file import read_start

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.source_lines import SourceLine

FOLDER: Final = "source"

_DIGITS = 12
_LONGEST_NAME = 80
_COPY = re.compile(rf"[0-9a-f]{{{_DIGITS}}}_.+", re.DOTALL)


def copy_name(path: str) -> str:
    """The name of a file's copy in the folder of copies."""
    name = re.sub(r"[^\w.+-]", "_", path.rpartition("/")[2])[-_LONGEST_NAME:]
    return f"{hashlib.sha1(path.encode('utf-8', 'surrogateescape')).hexdigest()[:_DIGITS]}_{name}"


def copied(trace: Path) -> list[str]:
    """The names of the files that a trace has copies of, without their folders; none where it has none."""
    folder = inside(trace, FOLDER)
    try:
        names = [] if folder is None else [path.name for path in folder.iterdir() if not path.is_symlink()]
    except OSError:
        return []
    return sorted(name[_DIGITS + 1 :] for name in names if _COPY.fullmatch(name))


class SourceFiles:
    """The copies in one trace. Each is read once; what is not there, or no text, has no lines."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace
        self._read = lru_cache(maxsize=64)(self._read_lines)

    def lines(self, path: str) -> tuple[str, ...]:
        """The lines of a file by the path that the compiler was given; none if the trace has no copy of it."""
        return self._read(path)

    def text(self, line: SourceLine) -> str:
        """The text of a line without the white space around it, "" if it is not known."""
        lines = self.lines(line.file)
        return lines[line.line - 1].strip() if 1 <= line.line <= len(lines) else ""

    def _read_lines(self, path: str) -> tuple[str, ...]:
        copy = inside(self._trace, FOLDER, copy_name(path))
        try:
            if copy is None or not copy.is_file():
                return ()
            data = read_start(copy, SOURCE_FILE)
        except OSError:
            return ()
        return tuple(_plain(line) for line in data.decode("utf-8", "replace").splitlines())


def _plain(line: str) -> str:
    """A line as a terminal can show it."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line.expandtabs(4))

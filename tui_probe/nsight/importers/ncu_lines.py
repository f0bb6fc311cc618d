"""The lines of a file that Nsight Compute wrote, told apart: its table, its messages, and the program's own output.

A line of a table begins with a number in its first cell, or with an empty cell (the units of the raw page). A line in
which the program wrote something without an end of line first is cut to where the table's part begins.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.input_limits import LINE_OF_CSV

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ROW: Final = re.compile(r'"\d+","')
_UNITS: Final = re.compile(r'(?:"",){4}|,{4}')
_MESSAGE: Final = re.compile(r"==(ERROR|WARNING|PROF)== ?(.*)")
_LONGEST_ROW: Final = 64
"""Lines that one row may go over, where a cell holds ends of lines."""
HEADING: Final = "Kernel Name"


@dataclass(slots=True)
class Lines:
    """Goes through the lines once and counts what is no table."""

    output: int = 0
    """Lines of the program's own output."""
    broken: int = 0
    """Lines that begin like a row and cannot be read."""
    messages: dict[str, list[str]] = field(default_factory=lambda: {"ERROR": [], "WARNING": [], "PROF": []})

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Headings and rows as cells, in order. A quote that is left open never runs on into other rows."""
        pending = ""
        for line in lines:
            text = line.rstrip("\r\n")
            if pending and _ROW.match(text):  # a new row: the one before it was cut off
                self.broken += 1
                pending = ""
            if pending:
                pending = self._continued(pending, text)
                if not pending.count('"') % 2:
                    yield from self._cells(pending)
                    pending = ""
                continue
            part = self._part(text)
            if part is None:
                continue
            cells = _quoted_cells(part)
            if cells is not None:
                yield cells
            elif part.count('"') % 2:
                pending = part
            else:
                yield from self._cells(part)
        self.broken += bool(pending)

    def _continued(self, pending: str, text: str) -> str:
        """A row and the next line of its cell; nothing if the cell is too long."""
        if pending.count("\n") < _LONGEST_ROW and len(pending) + len(text) < LINE_OF_CSV.most:
            return f"{pending}\n{text}"
        self.broken += 1
        return ""

    def _cells(self, text: str) -> Iterator[list[str]]:
        """The cells of any row; none if it cannot be read."""
        try:
            cells = next(csv.reader([text]), [])
        except csv.Error:
            self.broken += 1
            return
        if cells:
            yield cells

    def _part(self, text: str) -> str | None:
        """The part of a line that is of a table, None if there is none."""
        if _ROW.match(text):
            return text
        message = _MESSAGE.match(text)
        if message is not None:
            self.messages[message[1]].append(message[2].strip())
            return None
        if HEADING in text:
            return text[_heading_start(text) :]
        if _UNITS.match(text) or (text[:1].isdigit() and text.count(",") > 8):
            return text
        begin = _ROW.search(text)
        if begin is not None and text.count('","', begin.start()) > 8:
            return text[begin.start() :]
        self.output += bool(text.strip())
        return None


def _quoted_cells(text: str) -> list[str] | None:
    """The cells of a row as ncu writes it, each in quotes and without quotes in it, perhaps ended by a comma.

    Several times faster than ``csv``. A quote in a cell is written twice, so the number of quotes tells whether there
    is any; then the answer is None.
    """
    body = text[1:-2] if text.endswith('",') else text[1:-1] if text.endswith('"') else None
    if body is None or not text.startswith('"'):
        return None
    cells = body.split('","')
    return cells if text.count('"') == 2 * len(cells) else None


def _heading_start(text: str) -> int:
    """Where the headings begin in a line."""
    found = (text.find(first) for first in ('"ID",', '"Process ID",', '"Device Name",', "ID,", "Process ID,"))
    starts = [start for start in found if start >= 0]
    return min(starts, default=0)

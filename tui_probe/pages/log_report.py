"""The lines of ``event.log`` as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw.printable import printable
from tui_probe.draw.table import Column
from tui_probe.input_limits import LOG_LINE
from tui_probe.trace.locate import LOG
from tui_probe.trace.plain_file import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line, safe to print. ``tag`` is without its brackets, None for a line that has none."""

    number: int
    tag: str | None
    text: str


def log_rows(trace: Trace) -> Iterator[LogRow]:
    """All lines, numbered from 1."""
    path = trace.file(LOG)
    if path is None:
        return
    with open_plain(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LOG_LINE.most), b""), 1):
            text = printable(line)
            tag, _, rest = text.partition("]")
            yield LogRow(number, tag[1:] if tag.startswith("[") and rest else None, text)


LOG_COLUMNS: Final[tuple[Column[LogRow], ...]] = (
    Column("line", lambda r: r.number, "line", lambda r: str(r.number)),
    Column("tag", lambda r: r.tag),
    Column("text", lambda r: r.text, "text", lambda r: r.text, False, 0, 20),
)

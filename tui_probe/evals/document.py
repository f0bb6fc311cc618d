"""An answer as text: what was looked at, what was found, tables, drawings, published figures, and how to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.hanging import hanging
from tui_probe.draw.spans import wrap
from tui_probe.draw.table import safe, table
from tui_probe.draw.view import Document
from tui_probe.evals.published import COLUMNS
from tui_probe.pages.imported import Imported, ImportedPage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import View
    from tui_probe.evals.answer import Answer

_DRAWING_ROWS: Final = 18
_WIDEST_DRAWING: Final = 120
_LABEL: Final = 10


class AnswerDocument(Document):
    """The whole answer. ``drawn`` says whether its drawings are among the lines."""

    def __init__(self, answer: Answer, *, drawn: bool = True, ascii_only: bool = False) -> None:
        self.answer, self.drawn, self.ascii_only = answer, drawn, ascii_only
        self.title = f"{answer.name}: {answer.question}"

    def lines(self, width: int) -> Sequence[Line]:
        return [*self._head(width), *self._tables(width), *self._drawings(width), *self._below(width)]

    def _head(self, width: int) -> Iterator[Line]:
        for part in wrap(self.title, width):
            yield ((part, "title"),)
        for place, source in enumerate(self.answer.sources):
            label = "traces" if not place else ""
            for line, part in enumerate(wrap(safe(source), max(width - _LABEL, _LABEL))):
                yield ((f"{label if not line else '':<{_LABEL}}{part}", "dim"),)
        for said in ("", *self.answer.said):
            yield from (((part, ""),) for part in hanging(safe(said), width))

    def _tables(self, width: int) -> Iterator[Line]:
        for each in self.answer.tables.values():
            if each.in_text:
                yield ()
                yield ((each.title, "head"),)
                yield from (((line, "dim" if line.startswith("─") else ""),) for line in each.lines(width))
        if self.answer.compared:
            yield ()
            of = f" (ours: {safe(self.answer.hardware)})" if self.answer.hardware else ""
            yield ((f"beside published figures{of}", "head"),)
            yield from (((line, ""),) for line in table(COLUMNS, self.answer.compared, width))

    def _drawings(self, width: int) -> Iterator[Line]:
        cells = min(width, _WIDEST_DRAWING)
        for name, drawing in self.answer.drawings.items() if self.drawn else ():
            yield ()
            yield ((f"figure {name}", "head"),)
            work = drawing.prepare(cells, _DRAWING_ROWS)
            if work is not None:
                work()
            yield from trimmed(drawing.draw(cells, _DRAWING_ROWS, ascii_only=self.ascii_only))

    def _below(self, width: int) -> Iterator[Line]:
        if self.answer.notes:
            yield ()
        for note in self.answer.notes:
            yield from (((part, "dim"),) for part in hanging(f"note: {safe(note)}", width))
        for paragraph in self.answer.reading:
            yield ()
            yield from (((part, ""),) for part in wrap(paragraph, width))

    def record(self) -> Mapping[str, Any]:
        return self.answer.to_dict()

    def cells(self) -> Iterator[Sequence[object]]:
        """The main table."""
        for each in list(self.answer.tables.values())[:1]:
            yield each.keys()
            yield from (list(record.values()) for record in each.records())


def trimmed(lines: Sequence[Line]) -> list[Line]:
    """Without empty lines at the end."""
    end = len(lines)
    while end and not any(text.strip() for text, _ in lines[end - 1]):
        end -= 1
    return list(lines[:end])


def pages_of(answer: Answer) -> Imported:
    """The answer and its drawings, a page each, for the screen."""

    def page(name: str) -> ImportedPage:
        view: View = answer.drawings[name]
        return ImportedPage(name, f"Figure {name}", lambda: view, answer.reading)

    first = ImportedPage("answer", "Answer", lambda: AnswerDocument(answer, drawn=False), answer.reading)
    return Imported(f"{answer.name}: {answer.question}", [first, *map(page, answer.drawings)])

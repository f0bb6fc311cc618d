"""The forms in which a page can be written to a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.draw.picture import write_png, write_svg
from tui_probe.draw.printable import printable_text
from tui_probe.pages.views.output import data_csv, json_lines, view_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_probe.draw.view import Document, Drawing, View
    from tui_probe.probekit.kind import Source

Writer = Callable[[Path], None]
"""Writes a new file; called in the background. Raises OSError or ProbeError."""
SUFFIXES = {
    "text": "txt", "CSV": "csv", "JSON": "json", "Markdown": "md", "SVG": "svg", "PNG": "png", "Perfetto": "json",
}  # fmt: skip
KEYS = {"text": "t", "CSV": "c", "JSON": "j", "Markdown": "m", "SVG": "s", "PNG": "p", "Perfetto": "f"}


def write_lines(lines: Callable[[], Iterable[str]], path: Path) -> None:
    """Lines of data, a newline after each."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines())


def write_text(lines: Callable[[], Iterable[str]], path: Path) -> None:
    """Text for people, without what a terminal would obey."""
    write_lines(lambda: map(printable_text, lines()), path)


def document_forms(name: str, document: Document, source: Source | None, cells: int) -> Mapping[str, Writer]:
    """Data of all of it, pictures of its first lines."""
    return _forms(name, document, source, cells, None)


def drawing_forms(name: str, drawing: Drawing, source: Source | None, size: tuple[int, int]) -> Mapping[str, Writer]:
    """Data, and pictures of what is visible."""
    return _forms(name, drawing, source, *size)


def _forms(name: str, view: View, source: Source | None, cells: int, rows: int | None) -> Mapping[str, Writer]:
    # Both bring the analyses, which no screen needs before its first frame.
    from tui_probe.pages.comparison import Comparison
    from tui_probe.pages.perfetto import writer_of

    def svg(path: Path) -> None:
        write_svg(path, list(view_lines(view, cells, rows)), cells, view.title)

    def png(path: Path) -> None:
        write_png(path, view, list(view_lines(view, cells, rows)), cells)

    forms: dict[str, Writer] = {
        "CSV": partial(write_lines, partial(data_csv, view)),
        "JSON": partial(write_lines, partial(json_lines, name, source, view)),
        "SVG": svg,
        "PNG": png,
    }
    if isinstance(view, Comparison):
        forms["Markdown"] = partial(write_lines, view.markdown)
    if (events := writer_of(view)) is not None:
        forms["Perfetto"] = partial(_ignore_count, events)
    return forms


def _ignore_count(write: Callable[[Path], int], path: Path) -> None:
    write(path)

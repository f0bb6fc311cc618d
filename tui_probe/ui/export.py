"""Export of pages: the forms of a file, new files, and the clipboard of the terminal."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.draw.picture import write_png, write_svg
from tui_probe.draw.printable import printable_text
from tui_probe.errors import ProbeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_probe.draw.view import Document, Drawing, View
    from tui_probe.probekit.page_kinds import ViewSource

Writer = Callable[[Path], None]
"""Writes a new file; called in the background. Raises OSError or ProbeError."""
# The forms of a file: the suffix of each, and the key that chooses it.
SUFFIXES = {
    "text": "txt", "CSV": "csv", "JSON": "json", "Markdown": "md", "SVG": "svg", "PNG": "png", "Perfetto": "json",
}  # fmt: skip
KEYS = {"text": "t", "CSV": "c", "JSON": "j", "Markdown": "m", "SVG": "s", "PNG": "p", "Perfetto": "f"}
LARGEST_CLIPBOARD = 74_994
"""Bytes whose OSC 52 sequence is shorter than 100 000 bytes, the least that terminals are known to take."""


def write_lines(lines: Callable[[], Iterable[str]], path: Path) -> None:
    """Lines of data, a newline after each."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines())


def write_text(lines: Callable[[], Iterable[str]], path: Path) -> None:
    """Text for people, without what a terminal would obey."""
    write_lines(lambda: map(printable_text, lines()), path)


def document_forms(name: str, document: Document, source: ViewSource | None, cells: int) -> Mapping[str, Writer]:
    """Data of all of it, pictures of its first lines."""
    return _forms(name, document, source, cells, None)


def drawing_forms(
    name: str, drawing: Drawing, source: ViewSource | None, size: tuple[int, int]
) -> Mapping[str, Writer]:
    """Data, and pictures of what is visible."""
    return _forms(name, drawing, source, *size)


def _forms(name: str, view: View, source: ViewSource | None, cells: int, rows: int | None) -> Mapping[str, Writer]:
    # Both bring the analyses, which no screen needs before its first frame.
    from tui_probe.pages.comparison import Comparison
    from tui_probe.pages.view_output import csv_of_view, json_lines, view_lines, writer_of

    def svg(path: Path) -> None:
        write_svg(path, list(view_lines(view, cells, rows)), cells, view.title)

    def png(path: Path) -> None:
        write_png(path, view, list(view_lines(view, cells, rows)), cells)

    forms: dict[str, Writer] = {
        "CSV": partial(write_lines, partial(csv_of_view, view)),
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


def copy_out(text: str) -> str:
    """Write a copied text to a file, since a terminal does not say whether it took it; returns what to tell."""
    text = printable_text(text)
    size = len(text.encode())
    file = _write_copy(text)
    if size <= LARGEST_CLIPBOARD:
        return f"copied {size} bytes, also to {file}"
    return f"{size} bytes are too many for a terminal's clipboard; the text is in {file}"


def _write_copy(text: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "tui-probe" / "copied.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError:  # no home that can be written
        handle, name = tempfile.mkstemp(prefix="tui-probe-copied-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return Path(name)
    return path


def export(page: str, suffix: str, write: Callable[[Path], None], folder: Path | None = None) -> str:
    """Write a page to a new file in ``folder`` (default: the current one). Return the message for the user."""
    folder = folder or Path.cwd()
    stem = f"tui-probe-{page}-{time.strftime('%Y%m%d-%H%M%S')}"
    path = None
    try:
        path = _new_file(folder, stem, suffix)
        write(path)
    except OSError as error:
        return f"cannot write to {folder}: {error.strerror or error}"
    except ProbeError as error:
        if path is not None and not path.stat().st_size:
            path.unlink()
        return str(error)
    return f"wrote {path.name} in {folder}"


def _new_file(folder: Path, stem: str, suffix: str) -> Path:
    number = 0
    while True:
        path = folder / (f"{stem}.{suffix}" if not number else f"{stem}-{number}.{suffix}")
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return path

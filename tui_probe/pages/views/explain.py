"""The walk through a trace, from its files to what this kernel's probe says, as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.view import Document
from tui_probe.pages.tour import tour_lines
from tui_probe.probekit.kind import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source

_WIDEST: Final = 120
"""Cells of a line, which are wrapped when the page is opened: its text reads files."""
_PARAGRAPH: Final = "  "


class Walk(Document):
    """Titles, and indented lines below each."""

    def __init__(self, title: str, text: Sequence[str]) -> None:
        self.title = title
        self.text = text

    def lines(self, width: int) -> Sequence[Line]:
        """Titles set out, what the log says in words as the rest."""
        del width
        return [((line, "" if line.startswith(_PARAGRAPH) else "title"),) for line in self.text]

    def anchors(self, width: int) -> Sequence[int]:
        """The titles."""
        del width
        return [number for number, line in enumerate(self.text) if line and not line.startswith(_PARAGRAPH)]

    def stops(self) -> str:
        return "part"

    def record(self) -> dict[str, Any]:
        """The lines by title."""
        return {"parts": self._parts()}

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per line."""
        yield "part", "text"
        for part in self._parts():
            for line in part["lines"]:
                yield part["title"], line

    def _parts(self) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for line in self.text:
            if not line.startswith(_PARAGRAPH) and line:
                parts.append({"title": line, "lines": []})
            elif line:
                parts[-1]["lines"].append(line.strip())
        return parts


def _missing(source: Source) -> str | None:
    return None if source.kernel.folder is not None else "no file of it is in the trace"


def _open(source: Source, progress: Progress) -> Walk:
    progress(0.0)
    text = list(tour_lines(source.trace, _WIDEST, source.kernel))
    return Walk(f"The trace of {source.kernel.demangled}", text)


KIND: Final = Kind(
    "explain",
    "Explain",
    "a walk through the trace: its files, its log in words, the kernel before and after, a result byte by byte",
    _missing,
    _open,
    explanation=(
        "From the files of a trace to its numbers: what each file is, what lines of event.log mean, what the probe"
        " added to this kernel, how its result lies in the file, and what the probe says of it.",
    ),
    order=99,
    short="Explain",
)

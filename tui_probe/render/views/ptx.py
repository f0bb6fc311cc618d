"""The PTX of a kernel: as it was found, pruned to what the kernel needs, and with the probe in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.engine.edits import MARK
from tui_probe.errors import TraceError
from tui_probe.render.lazy import LazyLines
from tui_probe.render.source_text import coloured, drawn, read_lines
from tui_probe.render.views.view import Document, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.render.spans import Line
    from tui_probe.render.views.view import Progress, Source, View

VARIANTS: Final = ("probed", "pruned", "original")
_GUTTER: Final = 6


class Ptx(Document):
    """One of the texts at a time; ``level`` goes to the next."""

    def __init__(self, title: str, texts: Mapping[str, list[str]]) -> None:
        self.title = title
        self.texts = texts
        self.variant = next(iter(texts))

    @property
    def text(self) -> list[str]:
        """The lines of the text that is shown."""
        return self.texts[self.variant]

    def lines(self, width: int) -> Sequence[Line]:
        """Numbered lines."""
        del width
        return LazyLines(len(self.text), self._line)

    def _line(self, number: int) -> Line:
        text = self.text[number]
        inserted = MARK in text
        gutter = f"{number + 1:>{_GUTTER - 1}}{'+' if inserted else ' '} "
        return ((gutter, "added" if inserted else "dim"), *coloured(drawn(text), "added" if inserted else ""))

    def anchors(self, width: int) -> Sequence[int]:
        """The first line of each run of inserted ones."""
        del width
        marked = [MARK in line for line in self.text]
        return [i for i, inserted in enumerate(marked) if inserted and not (i and marked[i - 1])]

    def commands(self) -> Mapping[str, str]:
        """The other texts."""
        others = [name for name in self.texts if name != self.variant]
        return {"level": f"next text: {', '.join(others)}"} if others else {}

    def press(self, command: str) -> str | None:
        """The next text."""
        if command == "level":
            names = list(self.texts)
            self.variant = names[(names.index(self.variant) + 1) % len(names)]
        return None

    def status(self) -> list[str]:
        """Which text it is."""
        return [f"{self.variant}.ptx"]

    def take_over(self, before: View) -> None:
        """The same text of another kernel."""
        if isinstance(before, Ptx) and before.variant in self.texts:
            self.variant = before.variant

    def record(self) -> dict[str, Any]:
        """All texts."""
        return {name: "\n".join(lines) + "\n" for name, lines in self.texts.items()}

    def cells(self) -> Iterator[Sequence[object]]:
        """The text that is shown, a row a line."""
        yield "line", self.variant
        yield from enumerate(self.text, 1)


def missing(source: Source) -> str | None:
    """Why there is no PTX."""
    kernel = source.kernel
    if any(kernel.file(f"{name}.ptx") for name in VARIANTS):
        return None
    return kernel.reason or f"no PTX of it is in the trace (it is {kernel.status})"


def _open(source: Source, progress: Progress) -> Ptx:
    texts = {}
    for number, name in enumerate(VARIANTS):
        progress(number / len(VARIANTS))
        path = source.kernel.file(f"{name}.ptx")
        if path is not None:
            try:
                texts[name] = read_lines(path)
            except OSError as error:
                raise TraceError(f"{path}: {error.strerror or error}") from error
    return Ptx(f"PTX of {source.kernel.demangled}", texts)


KIND = Kind("ptx", "PTX", "the kernel's PTX: original, pruned, probed", missing, _open)

"""The machine code of the pruned and the probed kernel, what differs, and how many instructions of each class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.alignment import align, normalised_sass
from tui_probe.analysis.sass import CLASSES, parse
from tui_probe.engine.disassembler import INSTALL_HINT, disassemble, disassembler
from tui_probe.errors import ToolchainError, TraceError
from tui_probe.render.diff_lines import DiffLines
from tui_probe.render.lazy import LazyLines
from tui_probe.render.source_text import coloured, drawn
from tui_probe.render.spans import pad
from tui_probe.render.views.view import Document, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.analysis.sass import Code
    from tui_probe.render.spans import Line
    from tui_probe.render.views.view import Progress, Source, View
    from tui_probe.trace.model import Kernel

FILES: Final = ("pruned.bin", "probed.bin")
_SHOWN: Final = ("diff", "probed", "pruned")
_CLASS, _NUMBER = 14, 9
_SOURCE_CELLS: Final = 24


class Sass(Document):
    """Both codes, or their difference; ``level`` goes to the next."""

    def __init__(self, kernel: Kernel, pruned: Code, probed: Code, tool: str) -> None:
        self.title = f"Machine code of {kernel.demangled}"
        self.codes = {"pruned": pruned, "probed": probed}
        self.tool = tool
        self.shown = _SHOWN[0]
        self.alignment = align(pruned.lines, probed.lines, normalised_sass)
        self.text = DiffLines(
            pruned.lines, probed.lines, self.alignment, self._source_of if any(pruned.sources) else None
        )

    def _source_of(self, number: int) -> str:
        return self.codes["pruned"].sources[number]

    def lines(self, width: int) -> Sequence[Line]:
        """Counts by class, then code."""
        head = self._head()
        if self.shown == "diff":
            return self.text.lines(width, head)
        return LazyLines(len(self.codes[self.shown].lines), self._line, head)

    def anchors(self, width: int) -> Sequence[int]:
        """The first line of each change."""
        above = len(self._head())
        return [above + place for place in self.text.anchors(width)] if self.shown == "diff" else ()

    def _line(self, number: int) -> Line:
        code = self.codes[self.shown]
        text = coloured(drawn(code.lines[number]))
        return (
            (f"{number + 1:>5}  ", "dim"),
            *text,
            (f"  // {code.sources[number]}" if code.sources[number] else "", "dim"),
        )

    def _head(self) -> list[Line]:
        titles = ("pruned", "probed", "change")
        lines: list[Line] = [
            (
                (
                    " " + pad("instructions", _CLASS) + "".join(pad(title, _NUMBER, right=True) for title in titles),
                    "head",
                ),
            )
        ]
        for label, before, after in self._counts():
            change = f"{after - before:+}" if after != before else "same"
            role = "dim" if after == before else "warn"
            numbers = pad(str(before), _NUMBER, right=True) + pad(str(after), _NUMBER, right=True)
            lines.append(((" " + pad(label, _CLASS), "dim"), (numbers, ""), (pad(change, _NUMBER, right=True), role)))
        if self.alignment.problem:
            lines.append(((f" {self.alignment.problem}", "warn"),))
        return [*lines, ()]

    def _counts(self) -> Iterator[tuple[str, int, int]]:
        pruned, probed = self.codes["pruned"], self.codes["probed"]
        for name in CLASSES:
            if pruned.counts[name] or probed.counts[name]:
                yield name, pruned.counts[name], probed.counts[name]
        yield "all", pruned.total, probed.total

    def commands(self) -> Mapping[str, str]:
        """The other texts, and folding of the difference."""
        following = _SHOWN[(_SHOWN.index(self.shown) + 1) % len(_SHOWN)]
        commands = {"level": f"next text: {following}"}
        if self.shown == "diff" and self.text.can_fold:
            commands["fold"] = "show unchanged lines" if self.text.folded else "fold unchanged lines"
        return commands

    def press(self, command: str) -> str | None:
        """The next text, or folding."""
        if command == "level":
            self.shown = _SHOWN[(_SHOWN.index(self.shown) + 1) % len(_SHOWN)]
        elif command == "fold":
            self.text.folded = not self.text.folded
        return None

    def status(self) -> list[str]:
        """Which text it is, and who made it."""
        return [self.tool, "pruned and probed" if self.shown == "diff" else f"{self.shown}.bin"]

    def take_over(self, before: View) -> None:
        """The same text, folded or not."""
        if isinstance(before, Sass):
            self.shown, self.text.folded = before.shown, before.text.folded

    def record(self) -> dict[str, Any]:
        """Counts and both codes."""
        counts = {label: {"pruned": before, "probed": after} for label, before, after in self._counts()}
        return {"tool": self.tool, "counts": counts, **{name: code.lines for name, code in self.codes.items()}}

    def cells(self) -> Iterator[Sequence[object]]:
        """A row a class."""
        yield "class", "pruned", "probed"
        yield from self._counts()


def missing(source: Source) -> str | None:
    """Why there is no machine code, or nothing to read it with."""
    kernel = source.kernel
    absent = [name for name in FILES if kernel.file(name) is None]
    if absent:
        return kernel.reason or f"{' and '.join(absent)} of it are not in the trace: they are made by ptxas"
    return None if disassembler() is not None else f"no nvdisasm on this machine: {INSTALL_HINT}"


def _open(source: Source, progress: Progress) -> Sass:
    tool = disassembler()
    if tool is None:
        raise TraceError(f"no nvdisasm on this machine: {INSTALL_HINT}")
    codes = []
    for number, name in enumerate(FILES):
        progress(number / len(FILES))
        path = source.kernel.file(name)
        if path is None:
            raise TraceError(f"kernel #{source.kernel.index} has no {name} any more")
        try:
            codes.append(parse(disassemble(tool, path)))
        except ToolchainError as error:
            raise TraceError(str(error)) from error
    return Sass(source.kernel, codes[0], codes[1], f"{tool.path.name} {tool.version}")


KIND = Kind("sass", "SASS", "machine code of the pruned and the probed kernel, and what differs", missing, _open)

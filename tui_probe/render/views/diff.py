"""What the probe put into a kernel: its pruned and its probed PTX, line by line."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.alignment import align_probed
from tui_probe.errors import TraceError
from tui_probe.render import units
from tui_probe.render.diff_lines import DiffLines
from tui_probe.render.kernel_report import change
from tui_probe.render.source_text import read_lines
from tui_probe.render.spans import pad, wrap
from tui_probe.render.views.view import Document, Kind
from tui_probe.trace.source_lines import SourceLines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.render.spans import Line
    from tui_probe.render.views.view import Progress, Source, View
    from tui_probe.trace.model import Kernel
    from tui_probe.trace.source_lines import SourceLine

_LABEL: Final = 12
_WITH_NAMES: Final = 120
"""Cells from which on the registers that were added are named."""
_REGISTERS: Final = re.compile(r"\s*\.reg\s+\.(\w+)\s+([^;]+);")


class Diff(Document):
    """The two texts; ``fold`` shows what did not change, or folds it away."""

    def __init__(self, kernel: Kernel, pruned: list[str], probed: list[str], sources: SourceLines) -> None:
        self.title = f"What the probe added to {kernel.demangled}"
        self.costs = _costs(kernel)
        self.alignment = align_probed(pruned, probed)
        self.registers = added_registers([probed[p.right] for p in self.alignment.pairs
                                          if p.change == "added" and p.right is not None])  # fmt: skip
        self.counts = Counter(pair.change for pair in self.alignment.pairs)
        self.sources = sources
        self.text = DiffLines(pruned, probed, self.alignment, self._source_of if sources.lines else None)

    def _source_of(self, place: int) -> str:
        return place_of(self.sources.ptx_line(place + 1))

    def lines(self, width: int) -> Sequence[Line]:
        """What was added in numbers, then the texts."""
        return self.text.lines(width, self._head(width))

    def anchors(self, width: int) -> Sequence[int]:
        """The first line of each change."""
        above = len(self._head(width))
        return [above + place for place in self.text.anchors(width)]

    def _head(self, width: int) -> list[Line]:
        words = f"+{self.counts['added']} -{self.counts['removed']} ~{self.counts['changed']} lines"
        if not self.alignment.exact:
            words += f"; {self.alignment.problem or 'matched by what they say: no mark tells what was inserted'}"
        lines = _field("changes", words, width)
        if self.registers:
            total = sum(map(len, self.registers.values()))
            names = "; ".join(f".{kind} {', '.join(each)}" for kind, each in self.registers.items())
            if width < _WITH_NAMES:
                names = ", ".join(f"{len(each)} .{kind}" for kind, each in self.registers.items())
            lines += _field("registers", f"{units.counted(total, 'register')} of PTX added: {names}", width)
        if self.costs:
            lines += _field("assembled", self.costs, width)
        return [*lines, ()]

    def commands(self) -> Mapping[str, str]:
        """Folding, where there is something to fold."""
        if not self.text.can_fold:
            return {}
        return {"fold": "show unchanged lines" if self.text.folded else "fold unchanged lines"}

    def press(self, command: str) -> str | None:
        """Fold or unfold."""
        if command == "fold":
            self.text.folded = not self.text.folded
        return None

    def take_over(self, before: View) -> None:
        """Folded or not."""
        if isinstance(before, Diff):
            self.text.folded = before.text.folded

    def record(self) -> dict[str, Any]:
        """The pairs of lines, numbered from 1, with their texts."""
        return {
            "exact": self.alignment.exact,
            "problem": self.alignment.problem or None,
            "registers_added": self.registers,
            "lines": [dict(zip(_KEYS, row, strict=True)) for row in self._rows()],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """A row a pair of lines."""
        yield _KEYS
        yield from self._rows()

    def _rows(self) -> Iterator[Sequence[object]]:
        for pair in self.alignment.pairs:
            left = None if pair.left is None else self.text.left[pair.left]
            right = None if pair.right is None else self.text.right[pair.right]
            numbers = (None if place is None else place + 1 for place in (pair.left, pair.right))
            source = None if pair.left is None else self._source_of(pair.left) or None
            yield (pair.change, pair.owner or None, *numbers, source, left, right)


_KEYS: Final = ("change", "probe", "pruned_line", "probed_line", "source", "pruned", "probed")


def place_of(source: SourceLine | None) -> str:
    """``softmax.cu:31``; "" where it is not known."""
    return "" if source is None else f"{source.file.rpartition('/')[2]}:{source.line}"


def added_registers(lines: Sequence[str]) -> dict[str, list[str]]:
    """The registers that these lines of PTX declare, by type."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if match := _REGISTERS.match(line):
            found.setdefault(match[1], []).extend(name.strip() for name in match[2].split(","))
    return found


def _costs(kernel: Kernel) -> str:
    if kernel.registers_probed is None:
        return ""
    words = f"registers a thread {change(kernel.registers_pruned, kernel.registers_probed)}"
    if kernel.spills_probed is not None:
        words += f", spilled bytes {change(kernel.spills_pruned, kernel.spills_probed)}"
    return words


def _field(label: str, text: str, cells: int) -> list[Line]:
    parts = wrap(text, max(20, cells - _LABEL - 2))
    return [((" " + pad("" if i else label, _LABEL), "dim"), (part, "")) for i, part in enumerate(parts)]


def missing(source: Source) -> str | None:
    """Why there is nothing to compare."""
    kernel = source.kernel
    if kernel.file("pruned.ptx") is not None and kernel.file("probed.ptx") is not None:
        return None
    return kernel.reason or f"no probed PTX of it is in the trace (it is {kernel.status})"


def _open(source: Source, progress: Progress) -> Diff:
    texts = []
    for number, name in enumerate(("pruned.ptx", "probed.ptx")):
        progress(number / 4)
        path = source.kernel.file(name)
        if path is None:
            raise TraceError(f"kernel #{source.kernel.index} has no {name} any more")
        try:
            texts.append(read_lines(path))
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror or error}") from error
    progress(0.5)
    folder = source.kernel.folder
    sources = SourceLines({}) if folder is None else SourceLines.of(folder)
    progress(0.7)
    return Diff(source.kernel, texts[0], texts[1], sources)


KIND = Kind("diff", "Diff", "pruned and probed PTX side by side: every line that the probe added", missing, _open)

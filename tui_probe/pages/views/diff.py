"""Page ``diff``: pruned and probed PTX side by side, with measures."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.spans import pad, wrap
from tui_probe.draw.view import Document, Spot
from tui_probe.errors import TraceError
from tui_probe.pages.code.alignment import PARAMETER, align_probed
from tui_probe.pages.code.code_lines import SIDE_BY_SIDE_WIDTH, DiffLines, read_lines
from tui_probe.pages.code.kernel_sass import no_ptx_reason
from tui_probe.pages.code.line_measures import ColumnChoice, measures_of
from tui_probe.pages.code.measure_column import MeasureMargin
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.trace.source_lines import SourceLines, source_position
from tui_probe.verdicts.kernel_columns import before_after_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.code.line_measures import LineMeasures
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import KernelFacts

_LABEL_CELLS: Final = 12
"""Cells of a label."""
_REGISTERS: Final = re.compile(r"\s*\.reg\s+\.(\w+)\s+([^;]+);")
_CSV_KEYS: Final = ("change", "probe", "pruned_line", "probed_line", "source")
_TEXT_KEYS: Final = ("pruned", "probed")


class DiffView(Document):
    """The two texts.

    ``fold`` shows what did not change, or folds it away; ``level`` names the added registers; ``unit`` goes to the next
    thing that was measured.
    """

    def __init__(
        self,
        kernel: KernelFacts,
        pruned: list[str],
        probed: list[str],
        sources: SourceLines,
        measures: LineMeasures | None = None,
    ) -> None:
        self.title = f"What the probe added to {kernel.demangled}"
        self.costs = _costs(kernel)
        self.alignment = align_probed(pruned, probed)
        self.registers = added_registers([probed[p.right] for p in self.alignment.pairs
                                          if p.change == "added" and p.right is not None])  # fmt: skip
        self.counts = Counter(pair.change for pair in self.alignment.pairs)
        self.owners = {pair.owner for pair in self.alignment.pairs if pair.owner}
        self.sources = sources
        self.measures = measures
        self.column = ColumnChoice.from_first(measures)
        self.names_registers = False
        """True if the added registers are named, not only counted."""
        self.text = DiffLines(pruned, probed, self.alignment, self._source_of if sources.lines else None)

    def _source_of(self, place: int) -> str:
        return source_position(self.sources.ptx_line(place + 1))

    def lines(self, width: int) -> Sequence[Line]:
        """Counts of changes, then the texts."""
        return self.text.lines(width, self._head(width), self._margin(width))

    def begins(self, width: int) -> int:
        """Return the first line behind the counts."""
        return len(self._head(width))

    def gutter(self, width: int) -> int:
        """Numbers, signs, and what was measured."""
        return self.text.gutter(width, self._margin(width))

    def _margin(self, width: int) -> MeasureMargin:
        """Side by side the probe's name has room in the empty half."""
        owners = self.owners if width < SIDE_BY_SIDE_WIDTH else set()
        return MeasureMargin(self.column.column, owners, width)

    def line_facts(self, number: int, width: int) -> list[str]:
        """Return the probe that added a line, or all that was measured of it and its source."""
        place = number - len(self._head(width))
        pair = self.text.pair_at(place, width) if place >= 0 else None
        if pair is not None and pair.change == "added":
            return [f"of the probe {pair.owner}"] if pair.owner not in ("", PARAMETER) else []
        line = self.ptx_line(number, width)
        source = "" if line is None else self._source_of(line - 1)
        return [*(self.measures.line_texts(line) if self.measures else []), *([source] if source else [])]

    def ptx_line(self, number: int, width: int) -> int | None:
        """Return the line of the pruned text; for a folded run its first line."""
        place = number - len(self._head(width))
        pruned_index = self.text.pair_at(place, width).left if place >= 0 else None
        return None if pruned_index is None else pruned_index + 1

    def spot(self, number: int, width: int) -> Spot:
        """A line of the probe has a place in the probed text only."""
        place = number - len(self._head(width))
        pair = self.text.pair_at(place, width) if place >= 0 else None
        if pair is None or pair.left is not None or pair.right is None:
            return super().spot(number, width)
        return Spot(probed_line=pair.right + 1)

    def target(self, number: int, width: int) -> Spot | None:
        """Return the line; above the texts their first one."""
        spots = (self.spot(line_number, width) for line_number in range(number, len(self.lines(width))))
        return next(filter(None, spots), None)

    def place_of_spot(self, spot: Spot, width: int) -> int | None:
        """Also a line of the probe."""
        if spot.probed_line is None:
            return super().place_of_spot(spot, width)
        place = self.text.place_of_right(spot.probed_line - 1, width)
        return None if place is None else place + len(self._head(width))

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """Return a folded run where the line is in one."""
        place = self.text.place_of(ptx_line - 1, width)
        return None if place is None else place + len(self._head(width))

    def target_view(self) -> str:
        """Return the whole text."""
        return "ptx"

    def anchors(self, width: int) -> Sequence[int]:
        """Return the first line of each change."""
        head_lines = len(self._head(width))
        return [head_lines + place for place in self.text.anchors(width)]

    def _head(self, width: int) -> list[Line]:
        added_text, removed_text, changed_text = (
            units.count(self.counts[kind]) for kind in ("added", "removed", "changed")
        )
        text = f"{added_text} lines added, {removed_text} removed, {changed_text} changed"
        if not self.alignment.is_exact:
            text += f"; {self.alignment.problem or 'lines matched by text, as the trace has no marks'}"
        lines = _field("changes", text, width)
        if self.registers:
            total = sum(map(len, self.registers.values()))
            kinds = ", ".join(f"{len(names)} .{kind}" for kind, names in self.registers.items())
            lines += _field("registers", f"{units.counted(total, 'register')} added in PTX: {kinds}", width)
            if self.names_registers:
                names = "; ".join(f".{kind} {', '.join(kind_names)}" for kind, kind_names in self.registers.items())
                lines += _field("", names, width)
        if self.costs:
            lines += _field("assembled", self.costs, width)
        if self.measures:
            measure_column = self.column.column
            text = self.measures.column_title(measure_column) if measure_column else self.measures.missing_text
            lines += _field("measured", text, width)
        return [*lines, ()]

    def commands(self) -> Mapping[str, str]:
        """Folding, where there is something to fold; names of registers; the next thing that was measured."""
        commands = {}
        if self.text.can_fold:
            commands["fold"] = "show unchanged lines" if self.text.is_folded else "fold unchanged lines"
        if self.registers:
            commands["level"] = (
                "show the number of added registers" if self.names_registers else "show the names of added registers"
            )
        return {**commands, **self.column.commands()}

    def press(self, command: str) -> str | None:
        """Fold or unfold, name or count, or the next measure."""
        if command == "fold":
            self.text.is_folded = not self.text.is_folded
        elif command == "level":
            self.names_registers = not self.names_registers
        elif command == "unit":
            self.column.advance()
        return None

    def choices(self) -> Mapping[str, Any]:
        """Folding, names of registers, and the measures next to the text."""
        return {"folded": self.text.is_folded, "named": self.names_registers, "measure": self.column.key}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """All of it, if the same was measured."""
        self.text.is_folded, self.names_registers = choices["folded"], choices["named"]
        self.column.choose_key(choices["measure"])

    def record(self) -> dict[str, Any]:
        """Return the pairs of lines, numbered from 1, with their texts and what was measured of them."""
        keys, *rows = self.cells()
        return {
            "exact": self.alignment.is_exact,
            "problem": self.alignment.problem or None,
            "registers_added": self.registers,
            "measured": self.measures.origin_record() if self.measures else None,
            "lines": [dict(zip(map(str, keys), row, strict=True)) for row in rows],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row a pair of lines."""
        yield (*_CSV_KEYS, *(self.measures.keys if self.measures else ()), *_TEXT_KEYS)
        yield from self._rows()

    def _rows(self) -> Iterator[Sequence[object]]:
        for pair in self.alignment.pairs:
            pruned_text = None if pair.left is None else self.text.left[pair.left]
            probed_text = None if pair.right is None else self.text.right[pair.right]
            numbers = (None if place is None else place + 1 for place in (pair.left, pair.right))
            source = None if pair.left is None else self._source_of(pair.left) or None
            values = self.measures.row(None if pair.left is None else pair.left + 1) if self.measures else []
            yield (pair.change, pair.owner or None, *numbers, source, *values, pruned_text, probed_text)


def added_registers(lines: Sequence[str]) -> dict[str, list[str]]:
    """Return the registers that these lines of PTX declare, by type."""
    registers: dict[str, list[str]] = {}
    for line in lines:
        if match := _REGISTERS.match(line):
            registers.setdefault(match[1], []).extend(name.strip() for name in match[2].split(","))
    return registers


def _costs(kernel: KernelFacts) -> str:
    if kernel.registers_probed is None:
        return ""
    text = f"registers per thread {before_after_text(kernel.registers_pruned, kernel.registers_probed)}"
    if kernel.spills_probed is not None:
        text += f", spilled bytes {before_after_text(kernel.spills_pruned, kernel.spills_probed)}"
    return text


def _field(label: str, text: str, cells: int) -> list[Line]:
    parts = wrap(text, max(20, cells - _LABEL_CELLS - 2))
    return [((" " + pad("" if i else label, _LABEL_CELLS), "dim"), (part, "")) for i, part in enumerate(parts)]


def unavailable_reason(source: ViewSource) -> str | None:
    """Return why there is nothing to compare."""
    kernel = source.kernel
    if kernel.file("pruned.ptx") is not None and kernel.file("probed.ptx") is not None:
        return None
    return no_ptx_reason(kernel, f"the trace has no probed PTX of this kernel (status: {kernel.status})")


def _open_view(source: ViewSource, progress: Progress) -> DiffView:
    texts = []
    for number, name in enumerate(("pruned.ptx", "probed.ptx")):
        progress(number / 4)
        path = source.kernel.file(name)
        if path is None:
            raise TraceError(f"the {name} of kernel #{source.kernel.index} was deleted")
        try:
            texts.append(read_lines(path))
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror or error}") from error
    progress(0.5)
    folder = source.kernel.folder
    sources = SourceLines({}) if folder is None else SourceLines.from_folder(folder)
    progress(0.7)
    return DiffView(source.kernel, texts[0], texts[1], sources, measures_of(source))


KIND: Final = ViewKind(
    "diff",
    "Diff",
    "pruned and probed PTX side by side, with every line that the probe added",
    unavailable_reason,
    _open_view,
    explanation=(
        "Pruned PTX is on the left, probed PTX on the right. Added lines start with “+” and the name of the part of the"
        " probe that added them. Apart from added lines, only register declarations differ. Unchanged lines are"
        " folded.",
    ),
    order=0,
    all_probes=True,
)

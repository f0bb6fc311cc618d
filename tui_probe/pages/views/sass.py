"""Page ``sass``: SASS before and after probing, or of an unprobed kernel, with instruction counts by class.

Where the assembler wrote down from which line of PTX each instruction came, what was measured of a line is next to
the one instruction that came from it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.spans import LazyLines, pad, wrap
from tui_probe.draw.table import as_record
from tui_probe.draw.table_content import RemadeRows, TableContent
from tui_probe.draw.view import Document, Spot
from tui_probe.pages.code.alignment import align_graft, align_sass
from tui_probe.pages.code.code_lines import DiffLines, colored_code, printable_code
from tui_probe.pages.code.kernel_sass import (
    WaitLinks,
    has_both_sides,
    missing_code_reason,
    read_code,
    read_original,
    wait_links,
)
from tui_probe.pages.code.line_measures import ColumnChoice, measures_of
from tui_probe.pages.code.measure_column import MeasureColumn, MeasureMargin
from tui_probe.pages.code.sass_text import (
    CLASSES,
    COUNT_COLUMNS,
    LABEL_CELLS,
    InstructionCount,
    SassLine,
    count_lines,
    diff_columns,
)
from tui_probe.pages.views.original_sass import OriginalSassView
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.trace.kernel_files import Offset, long_position
from tui_probe.trace.source_lines import SourceLines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.code.alignment import LinePair
    from tui_probe.pages.code.kernel_sass import KernelSass
    from tui_probe.pages.code.line_measures import LineMeasures
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import KernelFacts

_VARIANTS: Final = ("diff", "probed", "pruned")
"""Texts of the page, in the order in which ``level`` shows them."""
_NUMBER_CELLS: Final = 7
"""Cells of a line number and the gap behind it, where one code is shown."""


class SassView(Document):
    """Both codes, or their difference; ``level`` goes to the next, ``unit`` to the next thing that was measured."""

    def __init__(
        self,
        kernel: KernelFacts,
        code: KernelSass,
        measures: LineMeasures | None = None,
        links: WaitLinks | None = None,
    ) -> None:
        self.title = f"SASS of {kernel.demangled}"
        self.code, self.codes = code, code.codes
        self._links = links or WaitLinks()
        self.variant = _VARIANTS[0]
        pruned, probed = self.codes["pruned"], self.codes["probed"]
        ptx_lines = code.purposes["pruned"], code.purposes["probed"]
        self.alignment = (
            align_sass(pruned.lines, probed.lines, ptx_lines, code.owners)
            if code.graft is None
            else align_graft(pruned, probed, code.graft, code.owners)
        )
        self.measures = measures if measures and _has_measures(measures, ptx_lines[0]) else None
        self.column = ColumnChoice(self.measures)
        self._wait_rows = self._measured_wait_rows()
        source_of = self._source_of if any(pruned.sources) else None
        linked_rows = {row for row, line in enumerate(ptx_lines[0]) if line is not None and self._links.is_linked(line)}
        self.text = DiffLines(pruned.lines, probed.lines, self.alignment, source_of, linked_rows.union(self._wait_rows))
        columns = diff_columns(self.measures.keys if self.measures else ())
        self.content = TableContent("lines", self.title, columns, RemadeRows(self._rows))

    def _source_of(self, number: int) -> str:
        return self.codes["pruned"].sources[number]

    def _measured_wait_rows(self) -> Sequence[int]:
        """Return the rows of the pruned code with a measured wait."""
        columns = self.measures.columns if self.measures and self._links.waits else ()
        measured_lines = {line for column in columns for line in column.values}
        return [row for row, line in enumerate(self.code.purposes["pruned"]) if line in measured_lines]

    # -- drawing

    def lines(self, width: int) -> Sequence[Line]:
        """Counts by class, then code."""
        head, margin = self._head(width), self._margin(width)
        if self.variant == "diff":
            return self.text.lines(width, head, margin)
        return LazyLines(len(self.codes[self.variant].lines), lambda number: self._line(number, margin), head)

    def _margin(self, width: int) -> MeasureMargin:
        """Measures by line of the code at the left."""
        measure = self.column.column
        if measure is None:
            return MeasureMargin(None, set(), width)
        side = "pruned" if self.variant == "diff" else self.variant
        numbered_lines = enumerate(self.code.purposes[side], 1)
        values = {
            place: measure.values[line] for place, line in numbered_lines if line is not None and line in measure.values
        }
        return MeasureMargin(MeasureColumn(measure.measure, values), set(), width)

    def begins(self, width: int) -> int:
        """Return the longest wait, else the first line behind the counts."""
        longest_wait = self.marked_line() if self._links.waits else None
        place = None if longest_wait is None else self.place_of(longest_wait[0], width)
        return len(self._head(width)) if place is None else place

    def marked_line(self) -> tuple[int, str] | None:
        """Return the instruction that has the mark."""
        shown_column = self.column.column
        return None if shown_column is None else shown_column.marked_line

    def gutter(self, width: int) -> int:
        """Numbers, signs, and what was measured."""
        margin = self._margin(width)
        if self.variant == "diff":
            return self.text.gutter(width, margin)
        return _NUMBER_CELLS + (margin.cells + 1 if margin.cells else 0)

    def _line(self, number: int, margin: MeasureMargin) -> Line:
        code = self.codes[self.variant]
        margin_spans: Line = (*margin.of_line(number + 1), (" ", "")) if margin.cells else ()
        source = f"  // {code.sources[number]}" if code.sources[number] else ""
        return (
            (f"{number + 1:>{_NUMBER_CELLS - 2}}  ", "dim"),
            *margin_spans,
            *colored_code(printable_code(code.lines[number])),
            (source, "dim"),
        )

    def _head(self, width: int) -> list[Line]:
        lines: list[Line] = [*count_lines(COUNT_COLUMNS, self._counts())]
        if self.measures is not None and (shown_column := self.column.column) is not None:
            diff = self.measures.column_title(shown_column)
            parts = wrap(diff, max(20, width - LABEL_CELLS - 4))
            labels = [" " + pad("measured", LABEL_CELLS), *[" " * (LABEL_CELLS + 1)] * (len(parts) - 1)]
            lines += [((label, "dim"), (f"  {part}", "")) for label, part in zip(labels, parts, strict=True)]
        if self.alignment.problem:
            lines.append(((f" {self.alignment.problem}", "warn"),))
        return [*lines, ()]

    def _counts(self) -> Iterator[InstructionCount]:
        pruned, probed = self.codes["pruned"], self.codes["probed"]
        for name in CLASSES:
            if pruned.counts[name] or probed.counts[name]:
                yield InstructionCount(name, pruned.counts[name], probed.counts[name])
        yield InstructionCount("all", pruned.total, probed.total)
        owned_addresses = zip(self.code.owners, probed.addresses, strict=True)
        if inserted_count := sum(owner is not None and address is not None for owner, address in owned_addresses):
            yield InstructionCount("of the probe", 0, inserted_count)

    # -- places

    def anchors(self, width: int) -> Sequence[int]:
        """Return the lines that were measured; in the difference, without waits, the first line of each change."""
        head_lines = len(self._head(width))
        if self.variant == "diff":
            waits = [self.text.place_of(row, width) for row in self._wait_rows]
            places = waits or self.text.anchors(width)
            return [head_lines + place for place in places if place is not None]
        measure = self._margin(width).measure
        return sorted(head_lines + place - 1 for place in measure.values) if measure else ()

    def anchor_noun(self) -> str:
        """Noun of the anchors."""
        return "change" if self.variant == "diff" and not self._wait_rows else "measured instruction"

    def line_facts(self, number: int, width: int) -> list[str]:
        """The probe that it is of, or the line of PTX that it came from, behind all that was measured of that."""
        line, place = self.ptx_line(number, width), number - len(self._head(width))
        if place >= 0 and self.variant != "pruned":
            probed_index = self._probed_index(place, width)
            if probed_index is not None and self.code.owners[probed_index]:
                return [f"of the probe {self.code.owners[probed_index]}"]
        if line is None:
            return []
        return [
            *self._links.texts(line),
            *(self.measures.line_texts(line) if self.measures else []),
            long_position(line),
        ]

    def pinned_facts(self, number: int, width: int) -> int:
        """Return the wait of an instruction, which Enter follows."""
        line = self.ptx_line(number, width)
        return 0 if line is None else min(1, len(self._links.texts(line)))

    def ptx_line(self, number: int, width: int) -> int | None:
        """Return the line that the assembler made it from, as it wrote down, or where it is in machine code that was
        probed itself.
        """
        place = number - len(self._head(width))
        if place < 0:
            return None
        if self.variant != "diff":
            return self.code.origins[self.variant][place]
        pair = self.text.pair_at(place, width)
        if pair.left is not None:
            return self.code.origins["pruned"][pair.left]
        return None if pair.right is None else self.code.origins["probed"][pair.right]

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """Return the first instruction that was made from it, or that is there."""
        side = "pruned" if self.variant == "diff" else self.variant
        # The instruction that does what the line says, else the first that came from it.
        lines = chain(enumerate(self.code.purposes[side]), enumerate(self.code.origins[side]))
        row = next((place for place, line in lines if line == ptx_line), None)
        if row is not None and self.variant == "diff":
            row = self.text.place_of(row, width)
        return None if row is None else row + len(self._head(width))

    def spot(self, number: int, width: int) -> Spot:
        """Instructions of a line of the probe have a place in the probed text only."""
        place = number - len(self._head(width))
        probed_index = self._probed_index(place, width) if place >= 0 else None
        probed_line = self.code.inserted[probed_index] if probed_index is not None and self.code.inserted else None
        return super().spot(number, width) if probed_line is None else Spot(probed_line=probed_line)

    def _probed_index(self, place: int, width: int) -> int | None:
        """Return the line of the probed code at a place below the head."""
        if self.variant == "diff":
            return self.text.pair_at(place, width).right
        return place if self.variant == "probed" else None

    def place_of_spot(self, spot: Spot, width: int) -> int | None:
        """Also the first instruction that was made from a line of the probe."""
        if spot.probed_line is None:
            return super().place_of_spot(spot, width)
        if self.variant == "pruned" or spot.probed_line not in self.code.inserted:
            return None
        place: int | None = self.code.inserted.index(spot.probed_line)
        if self.variant == "diff":
            place = self.text.place_of_right(self.code.inserted.index(spot.probed_line), width)
        return None if place is None else place + len(self._head(width))

    def missing_reason(self, spot: Spot) -> str:
        """The assembler may have made nothing of a line."""
        if spot.probed_line is not None and self.variant == "pruned":
            return f"line {spot.probed_line} of probed.ptx is part of the probe and not in pruned.bin"
        if spot.probed_line is not None:
            return f"line {spot.probed_line} of probed.ptx has no SASS"
        return f"{long_position(spot.ptx[0])} has no SASS" if spot.ptx else ""

    def target_view(self) -> str:
        """Return the PTX, where it is known; of measured waits this page, at the producer."""
        return "ptx" if self.code.has_ptx_lines else "sass" if self._links.waits else ""

    def target(self, number: int, width: int) -> Spot | None:
        """Return the line of PTX; from a wait its producer, and from there the wait."""
        if self.code.has_ptx_lines or not self._links.waits:
            return super().target(number, width)
        line = self.ptx_line(number, width)
        linked_offset = None if line is None else self._links.target(line)
        return None if linked_offset is None else Spot.of_line(Offset(linked_offset))

    def no_target_reason(self, number: int, width: int) -> str:
        """Instructions that the assembler added, or at which no wait with a known producer was measured."""
        line = self.ptx_line(number, width)
        if line is not None and line in self._links.waits:
            return "the producer of this wait is not known; choose another wait"
        if not self.code.has_ptx_lines:
            return "no wait was measured at this instruction; choose an instruction with a value"
        return "this instruction has no PTX line; choose another instruction"

    # -- choices

    def commands(self) -> Mapping[str, str]:
        """Return the other texts, folding of the difference, the next measure."""
        commands = {"level": f"next text: {_next_variant(self.variant)}"}
        if self.variant == "diff" and self.text.can_fold:
            commands["fold"] = "show unchanged lines" if self.text.is_folded else "fold unchanged lines"
        return {**commands, **self.column.commands()}

    def press(self, command: str) -> str | None:
        """Show the next text or measure, or fold or unfold lines."""
        if command == "level":
            self.variant = _next_variant(self.variant)
        elif command == "fold":
            self.text.is_folded = not self.text.is_folded
        elif command == "unit":
            self.column.advance()
        return None

    def status(self) -> list[str]:
        """Name of the text, and of its disassembler."""
        return [self.code.tool, "pruned and probed" if self.variant == "diff" else f"{self.variant}.bin"]

    def choices(self) -> Mapping[str, Any]:
        """Return the text, what is folded, and what is next to it."""
        return {"shown": self.variant, "folded": self.text.is_folded, "measure": self.column.key}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """All of it, if the same was measured."""
        self.variant, self.text.is_folded = choices["shown"], choices["folded"]
        self.column.choose_key(choices["measure"])

    # -- data

    def record(self) -> dict[str, Any]:
        """Counts, and the lines of both codes."""
        return {
            "tool": self.code.tool,
            "counts": {row.label: as_record(COUNT_COLUMNS, row) for row in self._counts()},
            "measured": self.measures.origin_record() if self.measures else None,
            "lines": [*self.content.records()],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Return a row per line, the left code before the right one; a label has no address and no class."""
        return self.content.cells()

    def _rows(self) -> Iterator[SassLine]:
        for pair in self.alignment.pairs:
            for side, place in (("pruned", pair.left), ("probed", pair.right)):
                if place is not None:
                    yield self._row(side, place, pair)

    def _row(self, side: str, place: int, pair: LinePair) -> SassLine:
        values = self.measures.row(self.code.purposes[side][place]) if self.measures else ()
        ptx_line = self.code.origins[side][place] if self.code.graft is None else None
        return SassLine(side, self.codes[side], place, pair.change, pair.owner, ptx_line, values)


def _has_measures(measures: LineMeasures, lines: Sequence[int | None]) -> bool:
    """Return whether any of these lines has a measured value."""
    return any(line in measure.values for measure in measures.columns for line in lines)


def _next_variant(variant: str) -> str:
    return _VARIANTS[(_VARIANTS.index(variant) + 1) % len(_VARIANTS)]


def unavailable_reason(source: ViewSource) -> str | None:
    """Return why there is no SASS, or nothing to read it with."""
    return missing_code_reason(source.kernel)


def _open_view(source: ViewSource, progress: Progress) -> SassView | OriginalSassView:
    if not has_both_sides(source.kernel):
        folder = source.kernel.folder
        sources = SourceLines({}) if folder is None else SourceLines.from_folder(folder)
        return OriginalSassView(source.kernel, *read_original(source.kernel, progress), sources)
    code, links = read_code(source.kernel, progress), wait_links(source.kernel)
    return SassView(source.kernel, code, measures_of(source), links)


KIND: Final = ViewKind(
    "sass",
    "SASS",
    "SASS of the pruned and the probed kernel, and their differences",
    unavailable_reason,
    _open_view,
    explanation=(
        "The SASS of both kernels as printed by nvdisasm, and instruction counts by class. ptxas schedules the whole"
        " kernel again, so more lines differ here than in PTX.",
        "A kernel without PTX is probed in SASS. Instructions stay at their offsets. “~” marks an instruction that was"
        " replaced by a branch; the code at the branch target follows. For a kernel that was not probed, the original"
        " SASS is shown.",
    ),
    order=0,
    all_probes=True,
)

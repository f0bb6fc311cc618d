"""Page ``ptx``: PTX of a kernel as found, pruned, and probed.

The pruned and the probed text have the measured values of each line in the margin; so has the original if SASS was
probed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.spans import LazyLines, labelled
from tui_probe.draw.view import Document, Spot
from tui_probe.errors import TraceError
from tui_probe.pages.code.alignment import PARAMETER, align_probed
from tui_probe.pages.code.code_lines import colored_code, printable_code, read_lines, without_edit_mark
from tui_probe.pages.code.kernel_sass import no_ptx_reason
from tui_probe.pages.code.line_measures import (
    ColumnChoice,
    flag_spans,
    flagged_lines,
    measures_by_row,
    measures_of,
)
from tui_probe.pages.code.measure_column import MeasureMargin
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.trace.kernel_files import long_position
from tui_probe.trace.source_lines import SourceLines, lines_of_original_ptx, source_position

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.code.alignment import LinePair
    from tui_probe.pages.code.line_measures import LineMeasures
    from tui_probe.pages.code.measure_column import MeasureColumn
    from tui_probe.probekit.page_kinds import ViewSource

VARIANTS: Final = ("probed", "pruned", "original")
"""Texts of a kernel, in the order in which ``level`` shows them; the first existing one is shown first."""
_MIN_DIGITS: Final = 5
"""Cells of a line number at least, so that the margin is as wide in all texts of usual kernels."""
_SUMS_NOTE: Final = "the sum of a source line is at the first instruction of the line"
_CHANGE_SIGNS: Final = {"added": "+", "changed": "~"}
_CHANGE_ROLES: Final = {"added": "added", "changed": "warn"}


class PtxView(Document):
    """One of the texts at a time; ``level`` shows the next text, ``unit`` the next measured value."""

    def __init__(
        self,
        title: str,
        texts: Mapping[str, list[str]],
        sources: SourceLines | None = None,
        measures: LineMeasures | None = None,
        flags: Mapping[int, str] | None = None,
        offsets: Mapping[int, Sequence[int]] | None = None,
        note: str = "",
    ) -> None:
        self.title = title
        self._note = note
        self._offsets = offsets or {}
        """Offsets of measured SASS instructions in bytes, by line of the original text from 1; empty if PTX was probed.
        With them, ``measures`` and ``flags`` are by these lines, too.
        """
        self._flags = flags or {}
        """Names of flagged findings, by line of the pruned text, from 1."""
        self.texts = texts
        self.sources = sources or SourceLines({})
        self.variant = next(iter(texts))
        self.measures = measures
        self.column = ColumnChoice.from_first(measures)
        self._pairs_by_probed = _probed_pairs(texts)
        """Pruned line and owner of each line of the probed text, by the latter's index from 0; empty if not aligned."""
        self._probed_index = {
            pair.left: right for right, pair in self._pairs_by_probed.items() if pair.left is not None
        }
        """Index of a line in the probed text, by its index in the pruned text, both from 0."""
        self._probe_names = {pair.owner for pair in self._pairs_by_probed.values() if pair.owner}
        """The probes that inserted lines."""
        self._pinned_lines: dict[tuple[int, str, int], list[Line]] = {}
        """The lines above the text, by width, variant and column."""
        self._run_starts = [right for right in self._pairs_by_probed if self._starts_run(right)]
        """Indices in the probed text, from 0, at which a run of inserted lines of one probe starts."""

    @property
    def text(self) -> list[str]:
        """The lines of the text that is shown."""
        return self.texts[self.variant]

    @property
    def _shows_sass_values(self) -> bool:
        """True if SASS was probed: then the original text has the measured values."""
        return bool(self._offsets)

    @property
    def _text_measures(self) -> LineMeasures | None:
        """Measures in the margin; the original has them only if SASS was probed."""
        return self.measures if self.variant != "original" or self._shows_sass_values else None

    @property
    def _shown_column(self) -> MeasureColumn | None:
        """The column in the margin; None if the shown text has no measured values."""
        return self.column.column if self._text_measures else None

    # -- drawing

    def lines(self, width: int) -> Sequence[Line]:
        """Return the numbered lines, below the heading with the file name and the measured value."""
        margin = self._margin(width)
        return LazyLines(len(self.text), lambda number: self._line(number, margin), self._head(width))

    def pinned(self, width: int) -> int:
        """Return the number of heading lines."""
        return len(self._head(width))

    def gutter(self, width: int) -> int:
        """Return the width of the line numbers and the measured values."""
        return len(self._numbers("", "")) + 2 + self._margin(width).cells

    def _head(self, width: int) -> list[Line]:
        """Return the heading: file name and title of the measured value."""
        key = width, self.variant, self.column.index
        if key not in self._pinned_lines:
            self._pinned_lines[key] = self._head_lines(width)
        return self._pinned_lines[key]

    def _head_lines(self, width: int) -> list[Line]:
        measure_title, role = "", "head"
        if (measures := self._text_measures) is not None:
            shown_column = self._shown_column
            measure_title = measures.column_title(shown_column) if shown_column else measures.missing_text
            role = "head" if shown_column else "warn"
        text = "; ".join(filter(None, (f"{self.variant}.ptx", measure_title, self._note)))
        return [((line, role),) for line in labelled(f"{self._numbers('PTX:', 'line')}  ", text, width)]

    def _numbers(self, pruned_number: object, text_number: object) -> str:
        """Return the numbers of a line in their cells: in the pruned text, by which other pages name it, and in the
        shown text where that is another one.
        """
        only_number = pruned_number if self.variant == "pruned" else text_number
        numbers = [pruned_number, text_number] if self._has_two_numbers else [only_number]
        digits = max(_MIN_DIGITS, len(str(len(self.text))) + 1)
        return "".join(f"{number:>{digits}}" for number in numbers)

    @property
    def _has_two_numbers(self) -> bool:
        """True if lines of the shown text are known as lines of the pruned one, under other numbers."""
        return self.variant == "probed" and bool(self._pairs_by_probed)

    def _margin(self, width: int) -> MeasureMargin:
        names = self._probe_names if self.variant == "probed" else set()
        return MeasureMargin(self._shown_column, names, width)

    def _line(self, number: int, margin: MeasureMargin) -> Line:
        line_pair = self._pairs_by_probed.get(number) if self.variant == "probed" else None
        change = line_pair.change if line_pair else ""
        role = _CHANGE_ROLES.get(change, "")
        line = self._measured_line(number)
        margin_spans = margin.of_line(line)
        if line_pair is not None and change == "added":
            margin_spans = (margin.of_run(line_pair.owner if self._starts_run(number) else ""),)
        return (
            (
                self._numbers(self._pruned_line(number) or "", number + 1) + _CHANGE_SIGNS.get(change, " "),
                role or "dim",
            ),
            *margin_spans,
            (" ", ""),
            *colored_code(printable_code(without_edit_mark(self.text[number])), role),
            *flag_spans(self._flags.get(line or 0, "")),
        )

    def _starts_run(self, number: int) -> bool:
        """Return whether a line of the probed text is the first of a run that one probe inserted."""
        pair, previous_pair = self._pairs_by_probed[number], self._pairs_by_probed.get(number - 1)
        return pair.change == "added" and (
            previous_pair is None or (previous_pair.change, previous_pair.owner) != ("added", pair.owner)
        )

    # -- places

    def _measured_line(self, number: int) -> int | None:
        """Return the line number by which measures know a line of the text, counted from 1; the text's is from 0."""
        return number + 1 if self._shows_sass_values and self.variant == "original" else self._pruned_line(number)

    def _pruned_line(self, number: int) -> int | None:
        """Return the line of pruned.ptx, counted from 1, of a line of the text, counted from 0."""
        if self.variant == "pruned":
            return number + 1
        pair = self._pairs_by_probed.get(number) if self.variant == "probed" else None
        return None if pair is None or pair.left is None else pair.left + 1

    def line_facts(self, number: int, width: int) -> list[str]:
        """Return the probe that inserted a line, or all that was measured of it and its source."""
        pair = self._pairs_by_probed.get(number - self.pinned(width)) if self.variant == "probed" else None
        if pair is not None and pair.change == "added":
            return [f"of the probe {pair.owner}"] if pair.owner not in ("", PARAMETER) else []
        position = self.ptx_line(number, width)
        source_text = None if position is None else source_position(self.sources.ptx_line(position))
        line = self._measured_line(number - self.pinned(width))
        measure_texts, flag = (
            self._text_measures.line_texts(line) if self._text_measures else [],
            self._flags.get(line or 0),
        )
        return [*filter(None, [flag]), *measure_texts, *filter(None, [source_text])]

    def ptx_line(self, number: int, width: int) -> int | None:
        """Return the line of the pruned text, or the first offset in SASS; None for a line of the probe."""
        number -= self.pinned(width)
        if self.variant == "original" and number >= 0:
            return next(iter(self._offsets.get(number + 1, ())), None)
        return self._pruned_line(number) if number >= 0 else None

    def spot(self, number: int, width: int) -> Spot:
        """Return the spot of a line; lines of the probe are found only in the probed text."""
        line, place = self.ptx_line(number, width), number - self.pinned(width)
        if line is None and place >= 0 and self.variant == "probed":
            return Spot(probed_line=place + 1)
        return Spot.of_line(line)

    def target(self, number: int, width: int) -> Spot | None:
        """Return the spot of a line that was measured, else None."""
        line, key = self.ptx_line(number, width), self._measured_line(number - self.pinned(width))
        return (
            Spot.of_line(line)
            if line is not None and self._text_measures and self._text_measures.line_texts(key or 0)
            else None
        )

    def no_target_reason(self, number: int, width: int) -> str:
        """Return why a line of the probe, or a line without measured values, has no target."""
        if self.variant == "original" and not self._shows_sass_values:
            return "only pruned.ptx and probed.ptx have measured values; press v to show one of these files"
        if self.spot(number, width).probed_line is not None:
            return "this line is part of the probe; press p to show it in the probe's file"
        if self._shown_column is None:
            return "no probe measured lines; press R to run again with a probe that measures lines"
        return "this line was not measured; press . for the next measured line"

    def turn_to(self, spot: Spot) -> bool:
        """Show the values of the probe that the spot names, and the text that has its line."""
        previous_choice = self.column.index, self.variant
        self.column.turn_to_probe(spot.probe)
        self.variant = self._variant_with(spot)
        return (self.column.index, self.variant) != previous_choice

    def _variant_with(self, spot: Spot) -> str:
        """Return the probed text for a line of the probe; for others the pruned one, where the one shown lacks them."""
        variant = "pruned" if spot.probed_line is None else "probed"
        if not spot.in_code or variant not in self.texts:
            return self.variant
        has_line = spot.probed_line is None and any(self._index_of(line) is not None for line in spot.ptx)
        return self.variant if has_line else variant

    def place_of_spot(self, spot: Spot, width: int) -> int | None:
        """Return the line of a spot, also of a line of the probe in the probed text."""
        if spot.probed_line is None:
            return super().place_of_spot(spot, width)
        is_shown = self.variant == "probed" and 0 < spot.probed_line <= len(self.text)
        return spot.probed_line - 1 + self.pinned(width) if is_shown else None

    def missing_reason(self, spot: Spot) -> str:
        """Return why the shown text has no line for a spot."""
        if spot.probed_line is not None:
            return f"line {spot.probed_line} of probed.ptx is part of the probe and not in {self.variant}.ptx"
        if not spot.ptx:
            return ""
        if self.variant == "original":
            return f"the position of {long_position(spot.ptx[0])} in original.ptx is unknown"
        return f"{long_position(spot.ptx[0])} is not in {self.variant}.ptx"

    def marked_line(self) -> tuple[int, str] | None:
        """Return the marked line and its text: a line of the pruned text, or the first SASS offset of a line."""
        marked_line = self._shown_column.marked_line if self._shown_column else None
        if marked_line is None or not self._shows_sass_values:
            return marked_line
        line, text = marked_line
        return self._offsets[line][0], text

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """Return the line of the shown text; None in the original."""
        place = self._index_of(ptx_line)
        return None if place is None else place + self.pinned(width)

    def _index_of(self, ptx_line: int) -> int | None:
        """Return the line of the text (from 0) for a line of pruned.ptx (from 1) or, in the original, for an offset."""
        index: int | None = ptx_line - 1
        if self.variant == "original":
            index = next((line - 1 for line, offsets in self._offsets.items() if ptx_line in offsets), None)
        elif self.variant == "probed":
            index = self._probed_index.get(ptx_line - 1)
        return None if index is None or not 0 <= index < len(self.text) else index

    def anchor_noun(self) -> str:
        """Noun of the anchors: measured lines, else what the probe inserted."""
        return "measured line" if self._shown_column else "change"

    def anchors(self, width: int) -> Sequence[int]:
        """Return the lines that were measured; without any, the first line of each run of inserted ones."""
        pinned_lines = self.pinned(width)
        if self._shown_column is not None:
            values = self._shown_column.values
            if self._shows_sass_values:
                return [line - 1 + pinned_lines for line in sorted(values)]
            places = (self.place_of(line, width) for line in values)
            return sorted(place for place in places if place is not None)
        return [pinned_lines + number for number in self._run_starts] if self.variant == "probed" else ()

    def target_view(self) -> str:
        """Return the page with all measured values: ``sass`` if SASS was probed, else ``lines``; "" if no line was
        measured.
        """
        if self._shows_sass_values:
            return "sass"
        return "lines" if self._shown_column else ""

    # -- choices

    def commands(self) -> Mapping[str, str]:
        """Return the keys for the next text and the next measured value."""
        other_variants = [name for name in self.texts if name != self.variant]
        commands = {"level": f"next text: {', '.join(other_variants)}"} if other_variants else {}
        return {**commands, **(self.column.commands() if self._text_measures else {})}

    def press(self, command: str) -> str | None:
        """Show the next text or the next measured value."""
        if command == "level":
            names = list(self.texts)
            self.variant = names[(names.index(self.variant) + 1) % len(names)]
        elif command == "unit" and self._text_measures:
            self.column.advance()
        return None

    def choices(self) -> Mapping[str, Any]:
        """Return the shown text and column."""
        return {"variant": self.variant, "measure": self.column.key}

    def choose(self, choices: Mapping[str, Any]) -> None:
        """Restore variant and measure, if this kernel has them."""
        self.variant = choices["variant"] if choices["variant"] in self.texts else self.variant
        self.column.choose_key(choices["measure"])

    # -- data

    def record(self) -> dict[str, Any]:
        """Return all texts, and the measured values by line of pruned.ptx, counted from 1."""
        texts = {name: "\n".join(lines) + "\n" for name, lines in self.texts.items()}
        measures = self.measures
        if measures is None:
            return {**texts, "measured": None}
        lines = sorted({line for column in measures.columns for line in column.values})
        rows = [{"line": line, **dict(zip(measures.keys, measures.row(line), strict=True))} for line in lines]
        return {**texts, "measured": {**measures.origin_record(), "lines": rows}}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield the shown text, one row per line, with the probe that inserted the line and the measured values."""
        measures = self._text_measures
        keys = measures.keys if measures else []
        yield ("line", "probe", *keys, self.variant)
        for number, text in enumerate(self.text):
            pair = self._pairs_by_probed.get(number) if self.variant == "probed" else None
            values = measures.row(self._measured_line(number)) if measures else []
            yield (number + 1, (pair.owner if pair else "") or None, *values, without_edit_mark(text))


def _probed_pairs(texts: Mapping[str, list[str]]) -> dict[int, LinePair]:
    """Return the pruned line and owner of each line of the probed text, by its index from 0.

    Empty without these two texts, or where their lines cannot be aligned exactly.
    """
    if "probed" not in texts or "pruned" not in texts:
        return {}
    alignment = align_probed(texts["pruned"], texts["probed"])
    return {pair.right: pair for pair in alignment.pairs if pair.right is not None} if alignment.is_exact else {}


def unavailable_reason(source: ViewSource) -> str | None:
    """Return why there is no PTX; None if there is some."""
    kernel = source.kernel
    if any(kernel.file(f"{name}.ptx") for name in VARIANTS):
        return None
    return no_ptx_reason(kernel, f"the trace has no PTX of this kernel (status: {kernel.status})")


def _open_view(source: ViewSource, progress: Progress) -> PtxView:
    texts = {}
    for number, name in enumerate(VARIANTS):
        progress(number / (len(VARIANTS) + 1))
        path = source.kernel.file(f"{name}.ptx")
        if path is not None:
            try:
                texts[name] = read_lines(path)
            except OSError as error:
                raise TraceError(f"{path}: {error.strerror or error}") from error
    folder = source.kernel.folder
    sources = None if folder is None else SourceLines.from_folder(folder)
    title, measures = f"PTX of {source.kernel.demangled}", measures_of(source)
    flags = flagged_lines(source)
    if measures is None or folder is None or set(texts) != {"original"}:
        return PtxView(title, texts, sources, measures, flags)
    # SASS was probed: a value measured at a SASS offset is shown at its line of the original text.
    lines_by_offset, has_line_table = lines_of_original_ptx(
        folder, "\n".join(texts["original"]), _offsets_by_cost(measures)
    )
    offsets_by_line: dict[int, list[int]] = {}
    for offset, line in lines_by_offset.items():
        offsets_by_line.setdefault(line, []).append(offset)
    flags = {lines_by_offset[offset]: flag for offset, flag in flags.items() if offset in lines_by_offset}
    note = "" if has_line_table else _SUMS_NOTE
    return PtxView(title, texts, sources, measures_by_row(measures, offsets_by_line), flags, offsets_by_line, note)


def _offsets_by_cost(measures: LineMeasures) -> list[int]:
    """Return the measured offsets, the one with the highest cost first."""
    if not measures.columns:
        return []
    return sorted(measures.columns[measures.first_column].values, key=measures.columns[measures.first_column].badness)


KIND: Final = ViewKind(
    "ptx",
    "PTX",
    "the kernel's PTX (original, pruned, probed), with values measured per line",
    unavailable_reason,
    _open_view,
    explanation=(
        "The PTX of the kernel: probed (as it ran), pruned (only this kernel), or original (as in the image). A PTX"
        " line on other pages, such as PTX:32, is a line of the pruned text. In the probed text, each line has two"
        " numbers: first its number in the pruned text, then its number in the probed text. If SASS was probed, values"
        " are next to the original text. If the cubin has a table of PTX lines, the value of a SASS instruction is at"
        " its PTX line. Without a table of PTX lines, the sum of a source line is at the first instruction of the"
        " line.",
        "Press u to see the next column of values. Lines with a finding have “!” and the name of the finding.",
    ),
    order=0,
    all_probes=True,
)

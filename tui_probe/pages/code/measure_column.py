"""A column of values next to code: texts in few cells, heat bars, and the mark of the worst line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.charts import row_bar
from tui_probe.draw.spans import pad
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.pages.code.alignment import PARAMETER
from tui_probe.probekit.lines import ShareValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.draw.spans import Line, Span
    from tui_probe.probekit.lines import LineMeasure, LineValue
    from tui_probe.probekit.shown_results import JoinedResult

BAR_SIGNS: Final = " ▁▂▃▄▅▆▇█"
WORST_MARK: Final = "!"
_LEVELS: Final = len(BAR_SIGNS) - 1
_MAX_TEXT_CELLS: Final = 12
"""Cells of a value in words; longer ones are cut."""
_UNITS: Final = "kMGTPE"
_NAME_CELLS: Final = 13
_WIDE_NAME_CELLS: Final = 18
"""Cells of the name of a probe with its mark, in a window of ``_WIDE`` cells or more."""
_MARK_CELLS: Final = 2
"""Cells of the mark of inserted lines, in a window too narrow for a bar."""
_WIDE_WINDOW: Final = 120
"""Cells of a window from which on names have more room."""
_WIDE_BAR_CELLS: Final = 4
"""Cells of a horizontal heat bar."""
_BAR_FROM: Final = 100
"""Cells of a window from which on there is room for a horizontal bar."""


@dataclass(frozen=True)
class MeasureColumn:
    """One quantity: its value by line of ``pruned.ptx``, counted from 1.

    None is of a line that was not executed, or that the probe saw and could not count. A line for which nothing is
    known is not in it.
    """

    measure: LineMeasure
    values: Mapping[int, LineValue]
    idle_lines: frozenset[int] = frozenset()
    """Lines that were not executed."""
    result: JoinedResult | None = None
    """The result that it is of; None where all columns are of one."""

    @property
    def name(self) -> str:
        """The name of the quantity."""
        return self.measure.name

    @property
    def extreme_word(self) -> str:
        """The value that stands out, in a word: most or fewest."""
        return "fewest" if self.measure.better == "higher" else "most"

    @cached_property
    def numbers(self) -> dict[int, float]:
        """The values that are numbers."""
        return {line: value for line, value in self.values.items() if isinstance(value, int | float)}

    @cached_property
    def maximum(self) -> float:
        """The largest."""
        return max(self.numbers.values(), default=0)

    @cached_property
    def worst(self) -> float | None:
        """The value that stands out; None where all are alike."""
        values = set(self.numbers.values())
        if len(values) < 2:
            return None
        return min(values) if self.measure.better == "higher" else max(values)

    def badness(self, line: int) -> float:
        """Sort key by which the worst value comes first, and a line without a number last."""
        value = self.numbers.get(line)
        return inf if value is None else value if self.measure.better == "higher" else -value

    @cached_property
    def marked_line(self) -> tuple[int, str] | None:
        """The first line that is marked as the worst, and its value in words."""
        lines = [line for line, value in self.numbers.items() if value == self.worst]
        if not lines:
            return None
        tie_text = f", equal in {units.count(len(lines))} lines" if len(lines) > 1 else ""
        return min(lines), f"the {self.extreme_word}: {cell_text(self, min(lines))}{tie_text}"

    @cached_property
    def value_cells(self) -> int:
        """Cells of a value."""
        return max((len(short_text(value)) for value in self.values.values()), default=0)

    def cells(self, *, wide: bool) -> int:
        """Cells of a value, its heat bar and the mark of the worst."""
        return self.value_cells + self._bar_cells(wide=wide) + len(WORST_MARK)

    def spans(self, line: int | None, *, wide: bool) -> Line:
        """Return the value of a line with its heat bar and mark, in exactly ``cells`` cells."""
        if line is None or line not in self.values:
            return ((" " * self.cells(wide=wide), ""),)
        value = self.values[line]
        text = pad(short_text(value), self.value_cells, right=True)
        if value is None:
            return ((text.ljust(self.cells(wide=wide)), "dim"),)
        bar, heat = self._bar(line, wide=wide)
        is_worst = value == self.worst
        mark = WORST_MARK if is_worst else " " * len(WORST_MARK)
        return (text, "warn" if is_worst else "accent"), (bar, heat), (mark, "warn" if is_worst else "")

    def _bar_cells(self, *, wide: bool) -> int:
        """Cells of a heat bar; none where there is nothing to compare."""
        return 0 if not self._full_bar_value else _WIDE_BAR_CELLS + 1 if wide else 1

    @cached_property
    def _full_bar_value(self) -> float:
        """The value of a full bar: the largest. Where all are alike, a block of full bars would show nothing: there it
        is the sum, if they can be added up, and else 0, for none.
        """
        if self.worst is not None:
            return self.maximum
        return sum(self.numbers.values()) if self.measure.rule == "sum" else 0

    def _bar(self, line: int, *, wide: bool) -> Span:
        """Return a bar of eight lengths where there is room, else of eight heights; its colour has the level, too."""
        cells, number = self._bar_cells(wide=wide), self.numbers.get(line, 0)
        if number <= 0 or not cells:
            return " " * cells, ""
        level = max(1, round(_LEVELS * number / self._full_bar_value))
        bar = " " + row_bar(level / _LEVELS, _WIDE_BAR_CELLS) if wide else BAR_SIGNS[level]
        return bar, f"ramp{level - 1}"


class MeasureMargin:
    """The column next to code: the value of a line, or the probe that inserted a run of lines, where it begins.

    ``owners`` are probes that may own lines. The parameters that hold a probe's maps name themselves.
    """

    def __init__(self, measure: MeasureColumn | None, owners: set[str], width: int) -> None:
        longest_name = max((len(name) for name in owners - {PARAMETER}), default=0)
        self.measure = measure
        self._has_wide_bar = width >= _BAR_FROM
        max_name_cells = (
            _MARK_CELLS if not self._has_wide_bar else _WIDE_NAME_CELLS if width >= _WIDE_WINDOW else _NAME_CELLS
        )
        name_cells = min(longest_name + 3, max_name_cells) if longest_name else 0
        cells = measure.cells(wide=self._has_wide_bar) if measure else 0
        self.cells = max(cells, name_cells)
        self._indent: Line = ((" " * (self.cells - cells), ""),) if self.cells > cells else ()

    def of_line(self, line: int | None) -> Line:
        """Return the measures of a line of ``pruned.ptx``."""
        if self.measure is None:
            return ((" " * self.cells, ""),)
        return (*self._indent, *self.measure.spans(line, wide=self._has_wide_bar))

    def of_run(self, owner: str) -> Span:
        """The probe whose lines begin here; "" further down. Where code needs the room there is the mark only."""
        if owner in ("", PARAMETER) or not self.cells:
            return " " * self.cells, "note"
        name = pad(owner, self.cells - 3, right=True) if self._has_wide_bar and self.cells > 3 else ""
        return pad(f" {name} ▸" if name else "▸", self.cells, right=True), "note"


def cell_text(column: MeasureColumn, line: int) -> str:
    value = column.values[line]
    heading = column.measure.heading
    return f"{heading} {value}" if isinstance(value, str) else f"{full_text(value)} {heading}"


def full_text(value: LineValue) -> str:
    """A value as the table of lines has it."""
    if isinstance(value, ShareValue):
        return value.text
    if isinstance(value, int):
        return units.count(value)
    return NOT_MEASURED if value is None else value if isinstance(value, str) else units.decimal(value)


def short_text(value: LineValue) -> str:
    """A number in about five cells: ``5.24``, ``1 620``, ``48.6k``, ``1.94M``; words are cut to ``_LONGEST_TEXT``."""
    if value is None:
        return NOT_MEASURED
    if isinstance(value, ShareValue):
        return value.text
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT_CELLS else value[: _MAX_TEXT_CELLS - 1] + "…"
    if isinstance(value, float) and abs(value) < 100:
        return f"{value:.2f}"
    if abs(value) < 9999.5:
        return units.count(round(value))
    magnitude, unit = value / 1e3, 0
    while abs(magnitude) >= 999.5 and unit < len(_UNITS) - 1:
        magnitude, unit = magnitude / 1e3, unit + 1
    return f"{magnitude:.{_decimals(abs(magnitude))}f}{_UNITS[unit]}"


def _decimals(magnitude: float) -> int:
    """Decimals with which a number below 1000 has three digits."""
    return 2 if magnitude < 9.995 else 1 if magnitude < 99.95 else 0

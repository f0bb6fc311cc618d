"""Measures of rows that stand for several lines of PTX, such as lines of source: sums, ratios, first values."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from tui_probe.probekit.lines import ShareValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.pages.code.line_measures import LineMeasures
    from tui_probe.pages.code.measure_column import MeasureColumn
    from tui_probe.probekit.lines import LineValue


def measures_by_row(measures: LineMeasures, rows: Mapping[int, Sequence[int]]) -> LineMeasures:
    """The measures of rows, each of which stands for some lines of ``pruned.ptx``; keyed by row, not by line.

    Quantities that can neither be added up nor be had from sums, such as shares and degrees, are left out.
    """
    columns: list[MeasureColumn] = []
    for _, group in groupby(measures.columns, lambda column: id(column.result)):
        columns += _columns_by_row(list(group), rows)
    return replace(measures, columns=tuple(columns))


def _columns_by_row(of_probe: Sequence[MeasureColumn], rows: Mapping[int, Sequence[int]]) -> Iterable[MeasureColumn]:
    """Yield the columns of one probe by row, those with a value only."""
    by_name = {column.name: column for column in of_probe}
    idle = frozenset(row for row, lines in rows.items() if _all_idle(of_probe, lines))
    for column in of_probe:
        if values := _values_by_row(column, by_name, rows):
            yield replace(column, values=dict(sorted(values.items())), idle=idle)


def _values_by_row(
    column: MeasureColumn, by_name: Mapping[str, MeasureColumn], rows: Mapping[int, Sequence[int]]
) -> dict[int, LineValue]:
    """Combine the values of the lines of each row by the rule of the measure; none where no rule applies."""
    if column.of.rule == "sum":
        return _sums_by_row(column, rows)
    if column.of.rule == "first":
        return {row: column.values[line] for row, line in _first_measured_lines(column, rows)}
    if column.of.rule not in ("ratio", "share") or not set(column.of.parts) <= by_name.keys():
        return {}
    over, under = (_sums_by_row(by_name[part], rows) for part in column.of.parts)
    ratios = {row: _ratio_of(over[row], under[row]) for row in over.keys() & under.keys()}
    if column.of.rule == "ratio":
        return ratios
    return {row: ShareValue(share) if isinstance(share, float) else None for row, share in ratios.items()}


def _sums_by_row(column: MeasureColumn, rows: Mapping[int, Sequence[int]]) -> dict[int, LineValue]:
    """The sum of each row with a known value; None where the only known value is that nothing was counted."""
    sums: dict[int, LineValue] = {}
    for row, lines in rows.items():
        counted = [column.numbers[line] for line in lines if line in column.numbers]
        if counted or any(line in column.values for line in lines):
            total = sum(counted) if counted else None
            is_share = total is not None and all(isinstance(value, ShareValue) for value in counted)
            sums[row] = ShareValue(total or 0) if is_share else total
    return sums


def _ratio_of(over: LineValue, under: LineValue) -> LineValue:
    if isinstance(over, int | float) and isinstance(under, int | float) and under:
        return over / under
    return None


def _first_measured_lines(column: MeasureColumn, rows: Mapping[int, Sequence[int]]) -> Iterable[tuple[int, int]]:
    """Yield each row with the first of its lines that has a value."""
    for row, lines in rows.items():
        line = next((line for line in sorted(lines) if column.values.get(line) is not None), None)
        if line is not None:
            yield row, line


def _all_idle(columns: Sequence[MeasureColumn], lines: Sequence[int]) -> bool:
    known = [line for line in lines if any(line in column.values for column in columns)]
    return bool(known) and all(any(line in column.idle for column in columns) for line in known)

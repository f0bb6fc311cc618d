"""What a probe measured of lines of PTX, added up for the lines of source that they came from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tui_probe.probekit.lines import Share
from tui_probe.probekit.measures import Measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.probekit.lines import Value
    from tui_probe.probekit.measures import Measures


def over_rows(measures: Measures, rows: Mapping[int, Sequence[int]]) -> Measures:
    """The measures of rows, each of which stands for some lines of ``pruned.ptx``; keyed by row, not by line.

    Quantities that can neither be added up nor be had from sums, such as shares and degrees, are left out.
    """
    by_name = {column.name: column for column in measures.columns}
    idle = frozenset(row for row, lines in rows.items() if _all_idle(measures.columns, lines))
    found = []
    for column in measures.columns:
        values: dict[int, Value] = {}
        if column.of.rule == "sum":
            values = _sums(column, rows)
        elif column.of.rule == "ratio" and set(column.of.parts) <= by_name.keys():
            over, under = (_sums(by_name[part], rows) for part in column.of.parts)
            values = {row: _ratio(over[row], under[row]) for row in over.keys() & under.keys()}
        elif column.of.rule == "share" and set(column.of.parts) <= by_name.keys():
            over, under = (_sums(by_name[part], rows) for part in column.of.parts)
            shares = {row: _ratio(over[row], under[row]) for row in over.keys() & under.keys()}
            values = {row: Share(each) if isinstance(each, float) else None for row, each in shares.items()}
        elif column.of.rule == "first":
            values = {row: column.values[line] for row, line in _first(column, rows)}
        if values:
            found.append(Measure(column.of, dict(sorted(values.items())), idle))
    return replace(measures, columns=tuple(found))


def _sums(column: Measure, rows: Mapping[int, Sequence[int]]) -> dict[int, Value]:
    """The sum of each row of which something is known; None where that is only that nothing was counted."""
    sums: dict[int, Value] = {}
    for row, lines in rows.items():
        counted = [column.numbers[line] for line in lines if line in column.numbers]
        if counted or any(line in column.values for line in lines):
            sums[row] = sum(counted) if counted else None
    return sums


def _ratio(over: Value, under: Value) -> Value:
    if isinstance(over, int | float) and isinstance(under, int | float) and under:
        return over / under
    return None


def _first(column: Measure, rows: Mapping[int, Sequence[int]]) -> Iterable[tuple[int, int]]:
    """Each row with the first of its lines that has a value."""
    for row, lines in rows.items():
        line = next((line for line in sorted(lines) if column.values.get(line) is not None), None)
        if line is not None:
            yield row, line


def _all_idle(columns: Sequence[Measure], lines: Sequence[int]) -> bool:
    known = [line for line in lines if any(line in column.values for column in columns)]
    return bool(known) and all(any(line in column.idle for column in columns) for line in known)

"""Measures of the lines of a kernel by all probes, largest loss first, and lines with a flagged finding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.pages.code.measure_column import WORST_MARK, MeasureColumn, cell_text
from tui_probe.probekit.finding import NO_FINDING
from tui_probe.probekit.guard import ProbeCodeError
from tui_probe.probekit.lines import ShareValue, measure_named
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe_view import no_result_reason
from tui_probe.probekit.recognised import analysis_name
from tui_probe.probekit.record_counts import sampled_blocks_text
from tui_probe.probekit.registry import probe_names_where
from tui_probe.probekit.shown_results import joined_sources, read_joined, unjoined_sources
from tui_probe.records.probed_sites import probed_sites
from tui_probe.trace.source_lines import SourceLines, is_of_toolkit
from tui_probe.verdicts.findings import MAX_UNASKED_BYTES, launch_findings, result_bytes, unprobed_findings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.probekit.finding import Finding, FindingOrder
    from tui_probe.probekit.lines import LineRows, LineSpec, LineValue
    from tui_probe.probekit.shown_results import JoinedResult

MAX_BYTES_BEFORE_CODE: Final = 64 << 20
"""Bytes of a result up to which a page of code reads it before it shows the code."""
FINDING_MARK: Final = "!"
"""Sign of a line of code with a flagged finding."""


@dataclass(frozen=True)
class LineMeasures:
    """All quantities that probes measured by line: of each probe the most telling one first.

    ``first_result`` is the result of the first probe, that with the largest loss. ``missing_text`` is why there are no
    columns.
    """

    first_result: JoinedResult
    columns: tuple[MeasureColumn, ...]
    missing_text: str = ""

    @property
    def first_column(self) -> int:
        """The column to begin with: the first of the first probe in which lines differ."""
        return self._first_column_of(self.columns[0].result) if self.columns else 0

    def _first_column_of(self, result: JoinedResult | None) -> int:
        result_columns = [place for place, column in enumerate(self.columns) if column.result is result]
        return next((place for place in result_columns if self.columns[place].worst is not None), result_columns[0])

    def column_of_probe(self, probe: str, current: int) -> int:
        """Return the column to show for a probe: ``current`` if it belongs to it or it is unknown, else its first."""
        if not self.columns or self._result(self.columns[current]).name == probe:
            return current
        results = (column.result for column in self.columns if self._result(column).name == probe)
        result = next(results, None)
        return current if result is None else self._first_column_of(result)

    def _result(self, column: MeasureColumn) -> JoinedResult:
        return self.first_result if column.result is None else column.result

    def column_title(self, measure: MeasureColumn) -> str:
        """Title of the column."""
        result = self._result(measure)
        launch = result.launch_label.partition(" of ")[0]
        title = f"{measure.measure.heading}, -p {result.name}, {launch}"
        if measure.worst is not None:
            title += f"; {WORST_MARK} the {measure.extreme_word}"
        unmeasured_lines = {line for line, value in measure.values.items() if value is None}
        if unmeasured_lines:
            title += f"; {NOT_MEASURED} not {'executed' if unmeasured_lines <= measure.idle_lines else 'counted'}"
        return title + ("; simulated GPU" if result.results[0].simulated else "")

    def line_texts(self, line: int | None) -> list[str]:
        """Return all that was measured of a line, what says most at the end; or that it was not executed.

        Empty where nothing is known of it.
        """
        known_columns = [column for column in self.columns if line is not None and line in column.values]
        executed = [column for column in known_columns if line not in column.idle_lines]
        if known_columns and not executed:
            return ["not executed"]
        texts = (cell_text(column, line) for column in reversed(executed) if line is not None)
        return list(dict.fromkeys(texts))

    def row(self, line: int | None) -> list[LineValue]:
        """Return the values of a line, None where nothing is known of it."""
        return [None if line is None else column.values.get(line) for column in self.columns]

    def origin_record(self) -> dict[str, object]:
        """Whose values they are, as data; of several probes also each with its launch."""
        results = list({id(result): result for result in map(self._result, self.columns)}.values())
        return {
            **_result_record(self.first_result),
            "problem": self.missing_text or None,
            **({"probes": [_result_record(result) for result in results]} if len(results) > 1 else {}),
        }

    @property
    def keys(self) -> list[str]:
        """The names of the columns in data; of a name that an earlier probe has, with the probe before it."""
        keys: list[str] = []
        for column in self.columns:
            key = column.measure.key
            keys.append(f"{self._result(column).name}.{key}" if key in keys else key)
        return keys


def _result_record(result: JoinedResult) -> dict[str, object]:
    return {"probe": result.name, "launch": result.newest_launch.number if result.newest_launch else None}


@dataclass(slots=True)
class ColumnChoice:
    """The measured column that a page draws next to the code, by its index in ``measures.columns`` from 0."""

    measures: LineMeasures | None
    index: int = 0

    @classmethod
    def from_first(cls, measures: LineMeasures | None) -> ColumnChoice:
        """Begin with the first column in which lines differ."""
        return cls(measures, measures.first_column if measures else 0)

    @property
    def column(self) -> MeasureColumn | None:
        """The chosen column; None if there are none."""
        return self._columns[self.index] if self._columns else None

    @property
    def _columns(self) -> tuple[MeasureColumn, ...]:
        return self.measures.columns if self.measures else ()

    def commands(self) -> dict[str, str]:
        """Return the command ``unit`` with the name of the next column; nothing if there is no other column."""
        if len(self._columns) < 2:
            return {}
        return {"unit": f"next column: {self._columns[self._next_index].measure.heading}"}

    def advance(self) -> None:
        """Choose the next column; after the last one the first."""
        if self._columns:
            self.index = self._next_index

    @property
    def _next_index(self) -> int:
        return (self.index + 1) % len(self._columns)

    def turn_to_probe(self, probe: str) -> None:
        """Choose a column of a probe, unless the chosen one is already of it or nothing was measured by it."""
        if self.measures is not None and probe:
            self.index = self.measures.column_of_probe(probe, self.index)

    @property
    def key(self) -> str:
        """The name in data of the chosen column, by which ``choose_key`` chooses it again; "" without a column."""
        return self.measures.keys[self.index] if self.measures and self._columns else ""

    def choose_key(self, key: str) -> None:
        """Choose the column with that name in data, if there is one."""
        keys = self.measures.keys if self.measures else []
        if key in keys:
            self.index = keys.index(key)


def measures_of(source: ViewSource) -> LineMeasures | None:
    """Return the measures of the lines of a launch by all probes, of their newest results unless it says which.

    None where there is nothing: another probe, no result. A result that cannot be read prevents no one from the code.
    """
    line_probes = probe_names_where(lambda probe: probe.lines)
    if no_result_reason(source, *line_probes) is not None:
        return None
    probe_measures = [
        measured for of_probe in line_sources(source) if (measured := _measures_of_probe(of_probe)) is not None
    ]
    if not probe_measures:
        return None
    nonempty = [measured for measured in probe_measures if measured.columns]
    if not nonempty:
        return probe_measures[0]
    same_code = [
        measured for measured in nonempty if _in_sass(measured.first_result) == _in_sass(nonempty[0].first_result)
    ]
    return replace(nonempty[0], columns=tuple(column for measured in same_code for column in measured.columns))


def _in_sass(result: JoinedResult) -> bool:
    """Return whether the lines of a result are offsets in SASS."""
    info = result.results[0].kernel.read_info()
    return info is not None and info.graft is not None


def _measures_of_probe(source: ViewSource) -> LineMeasures | None:
    """Return the measures of one probe; None if its result cannot be read."""
    try:
        result = read_joined(joined_sources(source))
        size = result.results[0].result.path.stat().st_size
        if size > MAX_BYTES_BEFORE_CODE:
            return LineMeasures(
                result, (), f"the result has {units.size(size)}; only the page Lines reads results of this size"
            )
        result_columns = tuple(replace(column, result=result) for column in value_columns(*line_rows(result)))
        missing_text = "" if result_columns else f"{result.launch_label.partition(' of ')[0]}: {no_line_text(result)}"
        return LineMeasures(result, result_columns, missing_text)
    except ProbeCodeError as error:
        return LineMeasures(result, (), str(error))
    except (TraceError, OSError):
        return None


def no_line_text(result: JoinedResult) -> str:
    """Return the text for a result without a line, with the reason if the kernel has no such instruction."""
    kernel = result.results[0].kernel
    if kernel.matched_nothing and kernel.reason:
        return printable(kernel.reason)
    return f"-p {result.name} measured no line of this kernel"


def line_rows(result: JoinedResult) -> tuple[LineSpec, LineRows]:
    """Return the measures of each line; what a header of the CUDA Toolkit defines is at the program's line.

    Raises TraceError if the result is not of a probe of lines.
    """
    first_result, probe = result.results[0], result.probe
    if probe.lines is None:
        raise TraceError(f"{first_result.result.path}: -p {first_result.probe} does not measure lines")
    rows = probe.lines.rows(first_result, result.analysis)
    if first_result.result.sample is not None:
        notes = [*rows.notes, f"{sampled_blocks_text(first_result.result.sample)}: all values cover only these blocks"]
        rows = replace(rows, notes=notes, unexecuted_lines=())
    folder = first_result.kernel.folder
    if folder is not None and any(row.source is not None and is_of_toolkit(row.source.file) for row in rows.rows):
        calls = SourceLines.from_folder(folder).calls
        rows = replace(rows, rows=[replace(row, source=calls.get(row.line, row.source)) for row in rows.rows])
    return probe.lines, rows


def opcodes_of(joined_result: JoinedResult) -> dict[int, str]:
    """Return the names of the instructions that the probes are at. Raises TraceError for damaged sites."""
    sites = (
        site for result in joined_result.results for site in reversed(probed_sites(result.kernel.folder).instructions())
    )
    return {site.line: site.opcode for site in sites}


def value_columns(spec: LineSpec, line_rows: LineRows) -> list[MeasureColumn]:
    """The columns of a table of lines that are numbers, or all if none is; of several values of a line the first."""
    rows: dict[int, dict[str, LineValue]] = {}
    for row in reversed(line_rows.rows):
        if row.line > 0:
            rows[row.line] = {**rows.get(row.line, {}), **row.values}
    names = list(dict.fromkeys(name for row in line_rows.rows for name in row.values))
    numeric = [name for name in names if any(_is_number(row.get(name)) for row in rows.values())]
    idle_lines = {line for line, row in rows.items() if _is_idle(row)} | set(line_rows.unexecuted_lines)
    value_columns = [
        MeasureColumn(
            measure_named(spec.measures, name),
            {line: row.get(name) for line, row in rows.items()} | dict.fromkeys(idle_lines),
            frozenset(idle_lines),
        )
        for name in numeric or names[:1]
    ]
    return sorted(value_columns, key=lambda measure: measure.name != spec.main)


def _is_idle(row: Mapping[str, LineValue]) -> bool:
    """Return whether the line was never executed: then all its counts are 0."""
    numbers = [value for value in row.values() if _is_number(value)]
    return bool(numbers) and not any(numbers)


def _is_number(value: LineValue) -> bool:
    return isinstance(value, int | float)


def measures_by_row(measures: LineMeasures, rows: Mapping[int, Sequence[int]]) -> LineMeasures:
    """Return the measures of rows, keyed by row, not by line. A row stands for some lines of ``pruned.ptx``.

    Quantities that can neither be added up nor be had from sums, such as shares and degrees, are left out.
    """
    columns: list[MeasureColumn] = []
    for _, group in groupby(measures.columns, lambda column: id(column.result)):
        columns += _columns_by_row(list(group), rows)
    return replace(measures, columns=tuple(columns))


def _columns_by_row(columns: Sequence[MeasureColumn], rows: Mapping[int, Sequence[int]]) -> Iterable[MeasureColumn]:
    """Yield the columns of one probe by row, those with a value only."""
    by_name = {column.name: column for column in columns}
    idle_rows = frozenset(row for row, lines in rows.items() if _are_all_idle(columns, lines))
    for column in columns:
        if values := _values_by_row(column, by_name, rows):
            yield replace(column, values=dict(sorted(values.items())), idle_lines=idle_rows)


def _values_by_row(
    column: MeasureColumn, by_name: Mapping[str, MeasureColumn], rows: Mapping[int, Sequence[int]]
) -> dict[int, LineValue]:
    """Combine the values of the lines of each row by the rule of the measure; none where no rule applies."""
    if column.measure.rule == "sum":
        return _sums_by_row(column, rows)
    if column.measure.rule == "first":
        return {row: column.values[line] for row, line in _first_measured_lines(column, rows)}
    if column.measure.rule not in ("ratio", "share") or not set(column.measure.parts) <= by_name.keys():
        return {}
    numerators, denominators = (_sums_by_row(by_name[part], rows) for part in column.measure.parts)
    ratios = {row: _ratio_of(numerators[row], denominators[row]) for row in numerators.keys() & denominators.keys()}
    if column.measure.rule == "ratio":
        return ratios
    return {row: ShareValue(share) if isinstance(share, float) else None for row, share in ratios.items()}


def _sums_by_row(column: MeasureColumn, rows: Mapping[int, Sequence[int]]) -> dict[int, LineValue]:
    """Return the sum of each row with a known value; None where the only known value is that nothing was counted."""
    sums: dict[int, LineValue] = {}
    for row, lines in rows.items():
        numbers = [column.numbers[line] for line in lines if line in column.numbers]
        if numbers or any(line in column.values for line in lines):
            total = sum(numbers) if numbers else None
            is_share = total is not None and all(isinstance(value, ShareValue) for value in numbers)
            sums[row] = ShareValue(total or 0) if is_share else total
    return sums


def _ratio_of(numerator: LineValue, denominator: LineValue) -> LineValue:
    if isinstance(numerator, int | float) and isinstance(denominator, int | float) and denominator:
        return numerator / denominator
    return None


def _first_measured_lines(column: MeasureColumn, rows: Mapping[int, Sequence[int]]) -> Iterable[tuple[int, int]]:
    """Yield each row with the first of its lines that has a value."""
    for row, lines in rows.items():
        line = next((line for line in sorted(lines) if column.values.get(line) is not None), None)
        if line is not None:
            yield row, line


def _are_all_idle(columns: Sequence[MeasureColumn], lines: Sequence[int]) -> bool:
    known_lines = [line for line in lines if any(line in column.values for column in columns)]
    return bool(known_lines) and all(any(line in column.idle_lines for column in columns) for line in known_lines)


def line_sources(source: ViewSource) -> list[ViewSource]:
    """Return the kernel under each probe that has values by line, the one with the largest loss in a line first.

    Probes with a result of the launch at hand come before the others, whose nearest launch is taken.
    """
    line_probes = probe_names_where(lambda probe: probe.lines)
    kernel_source = ViewSource(source.trace, source.kernel.kernel, source.launch)
    measured_sources = [
        probe_source
        for probe_source in unjoined_sources(kernel_source)
        if probe_source.kernel.result_rows and (analysis_name(probe_source.kernel) or "") in line_probes
    ]
    return sorted(measured_sources, key=lambda of_probe: (not _has_launch(of_probe, source), _loss_order(of_probe)))


def _has_launch(probe_source: ViewSource, source: ViewSource) -> bool:
    """Return whether the probe has a result of the launch at hand; True if no launch was chosen."""
    launches = [part.launch for part in joined_sources(probe_source)]
    return source.launch is None or any(launch is None or launch.row == source.launch.row for launch in launches)


def _loss_order(source: ViewSource) -> tuple[bool, FindingOrder]:
    """Return the order of a probe next to others: by its largest loss in a line, as in the summary."""
    orders = [finding.order for finding in _findings_of_probe(source) if finding.line is not None]
    return source.kernel.matched_nothing, min(orders, default=NO_FINDING)


def _findings_of_probe(source: ViewSource) -> tuple[Finding, ...]:
    """Return the findings of one probe; none of a result that is too large to be read unasked."""
    findings = launch_findings(source) if result_bytes(source) <= MAX_UNASKED_BYTES else None
    return () if findings is None else findings.findings


def flagged_lines(source: ViewSource) -> Mapping[int, str]:
    """Return the names of the flagged findings of all probes by their line of ``pruned.ptx``, or offset."""
    labels: dict[int, dict[str, None]] = {}
    for finding in _all_findings(source):
        if finding.stands_out and finding.line is not None:
            labels.setdefault(finding.line, {})[finding.label] = None
    return {line: ", ".join(line_labels) for line, line_labels in labels.items()}


def flag_spans(flag: str) -> Line:
    """Return the names of the findings of a line, for the end of its code."""
    return ((f"  {FINDING_MARK} {flag}", "warn"),) if flag else ()


def _all_findings(source: ViewSource) -> Iterator[Finding]:
    for probe_source in unjoined_sources(ViewSource(source.trace, source.kernel.kernel, source.launch)):
        yield from _findings_of_probe(probe_source)
    for result in unprobed_findings(source.kernel.kernel):
        yield from result.findings

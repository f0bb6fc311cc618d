"""Tables of results: a row per launch, the spread of many launches, distributions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median_low
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import command_lines, hang_line, pad, wrap
from tui_probe.draw.table import Column, in_tables, table
from tui_probe.draw.table_content import ColumnOrder, TableContent
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document
from tui_probe.errors import TraceError
from tui_probe.probekit.measured import (
    AnalysedResult,
    analyse_result,
    extent_text,
    known_probe,
    metric_text,
    result_extent,
    results_by_extent,
)
from tui_probe.probekit.probe_view import probe_view
from tui_probe.probekit.record_counts import sampled_blocks_text
from tui_probe.records.distribution import PERCENTILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.measured import BlockExtent
    from tui_probe.probekit.metric import MetricValue
    from tui_probe.probekit.page_kinds import ViewKind, ViewSource
    from tui_probe.records.distribution import Distribution
    from tui_probe.trace.model import KernelFacts, Trace

_SHOWN_PERCENTILES: Final = {0: "min", 25: "25 %", 50: "median", 75: "75 %", 95: "95 %", 99: "99 %", 100: "max"}
PAIR_RATIO_LABEL: Final = "ratio of pairs"
"""Label of slowdowns of pairs of launches: their median is seldom the ratio of the median times."""
_LABEL_CELLS: Final = 14
_VALUE_CELLS: Final = 9
MAX_LISTED_RESULTS: Final = 8
"""Maximum number of results of a kernel with a line each."""
MAX_READ_PER_KERNEL: Final = 32
"""Maximum number of results that are read: reading all may take minutes, and the spread is much the same."""
MAX_READ_IN_ALL: Final = 512
MIN_READ_PER_KERNEL: Final = 3
"""Minimum number of results per kernel if many kernels share those that are read."""
_COLUMNS: Final[tuple[Column[Spread], ...]] = (
    Column("figure", None, "", lambda s: s.minimum.label, right=False),
    Column("least", None, "min", lambda s: metric_text(s.minimum)),
    Column("median", None, "median", lambda s: metric_text(s.median)),
    Column("most", None, "max", lambda s: metric_text(s.maximum)),
)
_MAX_ROWS: Final = 1000
"""Maximum number of results in a table of launches, the newest ones."""
_DATA_COLUMNS: Final[tuple[Column[AnalysedResult], ...]] = (
    Column("blocks", lambda result: result.blocks),
    Column("blocks_measured", lambda result: result.blocks_measured),
    Column("threads_missing", lambda result: result.threads_missing),
    Column("problem", lambda result: result.problem),
)
_SAMPLED_RANK: Final = 100
"""Rank of the column that is dropped first, since a note below the table says the same."""


def distribution_titles(label: str = "") -> Line:
    """Return the line of column titles; ``label`` names the values."""
    return (
        (pad(label, _LABEL_CELLS), "dim"),
        ("".join(pad(title, _VALUE_CELLS, right=True) for title in _SHOWN_PERCENTILES.values()), "head"),
    )


def unmeasured_row(label: str) -> Line:
    """Return the line of a value that was not measured."""
    return (
        (pad(label, _LABEL_CELLS), "dim"),
        ("".join(pad(NOT_MEASURED, _VALUE_CELLS, right=True) for _ in _SHOWN_PERCENTILES), "dim"),
    )


def distribution_row(label: str, spread: Distribution, format_value: Callable[[float], str]) -> Line:
    """Return the line of a distribution; ``format_value`` formats a value in at most 8 characters."""
    values = (spread.percentiles[PERCENTILES.index(percentile)] for percentile in _SHOWN_PERCENTILES)
    return (
        (pad(label, _LABEL_CELLS), "dim"),
        ("".join(pad(format_value(value), _VALUE_CELLS, right=True) for value in values), ""),
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """Minimum, median and maximum of a value over some results."""

    minimum: MetricValue
    median: MetricValue
    maximum: MetricValue


def kernel_result_lines(trace: Trace, kernel: KernelFacts, cells: int, kernels: int) -> Iterator[str]:
    """Return a table of results for one of ``kernels`` kernels, as text; data has every result."""
    share = max(MIN_READ_PER_KERNEL, min(MAX_READ_PER_KERNEL, MAX_READ_IN_ALL // kernels))
    yield from result_lines(trace, kernel, cells, MAX_LISTED_RESULTS, share)
    if len(kernel.result_rows) > MAX_LISTED_RESULTS:
        command = f"tui-probe show results {shell_word(trace.directory)}:{kernel.index}@LAUNCH"
        yield from command_lines("  … to show all results, add --format csv; to show one result, run", command, cells)


def result_lines(trace: Trace, kernel: KernelFacts, cells: int, max_listed: int, max_read: int) -> Iterator[str]:
    """Return a line per result; of more than ``max_listed``, the spread of values over ``max_read`` of them."""
    rows = kernel.result_rows
    if len(rows) <= max_listed:
        analysed_results = [analyse_result(trace, kernel, row) for row in rows]
        for result in analysed_results:
            if not result.problem:
                yield from hang_line(_result_line(trace, result), cells)
        yield from _problem_lines(trace, analysed_results, cells)
        return
    analysed_results = [analyse_result(trace, kernel, row) for row in spread_rows(rows, max_read)]
    part = (
        f", {len(analysed_results)} of them read (evenly spaced from first to last)"
        if len(analysed_results) < len(rows)
        else ""
    )
    simulated = ", simulated" if trace.state.simulated else ""
    yield from hang_line(f"  {units.counted(len(rows), 'result')}{part}{simulated}", cells)
    groups = results_by_extent(result for result in analysed_results if result.analysis is not None)
    for extent, results in groups.items():
        if extent is not None:
            yield f"    {_sampled_extent_text(extent, len(results))}"
        elif len(groups) > 1:
            yield f"    {units.counted(len(results), 'launch')}, all blocks measured"
        spreads = metric_spreads(results)
        if spreads:
            yield from (f"    {line}" for line in table(_COLUMNS, spreads, cells - 4))
    yield from _problem_lines(trace, analysed_results, cells)


def _problem_lines(trace: Trace, results: Sequence[AnalysedResult], cells: int) -> Iterator[str]:
    """Yield the first result of each problem, with the number of other results that have it."""
    results_by_problem: defaultdict[str, list[AnalysedResult]] = defaultdict(list)
    for result in results:
        if result.problem:
            results_by_problem[result.problem.replace(result.file, "")].append(result)
    for example, *repeats in results_by_problem.values():
        repeats_text = f" (and {units.counted(len(repeats), 'other')})" if repeats else ""
        yield from hang_line(_result_line(trace, example) + repeats_text, cells)


def _sampled_extent_text(extent: BlockExtent, launches: int) -> str:
    return f"{units.counted(launches, 'launch')} sampled, {extent_text(extent)} each: values cover only these blocks"


def _result_line(trace: Trace, result: AnalysedResult) -> str:
    """Return the line of a result; files of the trace are named as they are in it."""
    return f"  {result.label}: " + result.words.replace(f"{printable(str(trace.directory))}/", "")


def spread_rows(rows: Sequence[int], max_rows: int) -> list[int]:
    """Return up to ``max_rows`` rows, two or more, the first and the last included."""
    if len(rows) <= max_rows:
        return list(rows)
    return [rows[index * (len(rows) - 1) // (max_rows - 1)] for index in range(max_rows)]


def metric_spreads(results: Iterable[AnalysedResult]) -> list[Spread]:
    """Return the spread of each value that text shows and that was measured; positions have no size, and are left
    out.
    """
    by_key: dict[str, list[MetricValue]] = {}
    for result in results:
        for metric_value in result.metric_values:
            if metric_value.is_shown and metric_value.value is not None and not metric_value.metric.place:
                by_key.setdefault(metric_value.key, []).append(metric_value)
    return [_spread(metric_values) for metric_values in by_key.values()]


def _spread(metric_values: list[MetricValue]) -> Spread:
    values = sorted(metric_value.value for metric_value in metric_values if metric_value.value is not None)
    minimum, median, maximum = (
        replace(metric_values[0], value=value) for value in (values[0], median_low(values), values[-1])
    )
    return Spread(minimum, median, maximum)


class CountTable(Document):
    """The newest launches of a kernel that have results, or one of them."""

    def __init__(self, source: ViewSource, title: str, progress: Progress, extra_notes: Sequence[str] = ()) -> None:
        """Analyse the results; ``extra_notes`` are shown below the table."""
        kernel = source.kernel
        self.title = f"{title} of {kernel.demangled}"
        self.name = f"#{kernel.index} {printable(kernel.demangled)}"
        candidates = list(kernel.result_rows) if source.launch is None else [source.launch.result]
        rows = [row for row in candidates if row is not None]
        self.excluded_launches = max(len(rows) - _MAX_ROWS, 0)
        self.results: list[AnalysedResult] = []
        for i, row in enumerate(rows[-_MAX_ROWS:]):
            progress(i / len(rows))
            self.results.append(analyse_result(source.trace, kernel, row))
        self.simulated = source.trace.state.simulated
        self.probe_notes = known_probe(self.results[-1].kernel if self.results else kernel).notes
        self.extra_notes = extra_notes
        self.content = TableContent("launches", self.title, _result_columns(self.results), self.results)
        self._order = ColumnOrder()

    def lines(self, width: int) -> Sequence[Line]:
        """Return the table, and the notes on the values of the newest launch."""
        lines: list[Line] = [((shorten(self.name, width), "title"),)]
        if self.excluded_launches:
            launches = units.counted(_MAX_ROWS + self.excluded_launches, "launch")
            lines.append(((f"newest {units.count(_MAX_ROWS)} of {launches}", "dim"),))
        columns = [self._order.with_arrow(column) for column in self.content.columns]
        head, rule, *body = table(columns, self.content.rows, width)
        lines += [((head, "head"),), ((rule, "rule"),), *(((line, ""),) for line in body)]
        for note in self._notes():
            lines += [(), *(((part, ""),) for part in wrap(note, width))]
        return lines

    def sortable(self) -> Mapping[str, str]:
        columns = in_tables(self.content.columns) if len(self.results) > 1 else ()
        return {column.key: column.title for column in columns if column.value is not None}

    @property
    def sorted_column(self) -> str:
        return self._order.key

    def sort_by(self, key: str) -> None:
        """Sort by launch ascending, by values descending; the same column again reverses the order."""
        self._arrange(self._order.choose(key, is_descending=key != "launch"))

    def choices(self) -> Mapping[str, Any]:
        return {"order": self._order}

    def choose(self, choices: Mapping[str, Any]) -> None:
        if choices["order"].key in self.sortable():
            self._arrange(choices["order"])

    def _arrange(self, order: ColumnOrder) -> None:
        value = next(column.value for column in self.content.columns if column.key == order.key)
        assert value is not None
        self._order, self.content.rows = order, order.sort_rows(self.results, value)

    def _notes(self) -> list[str]:
        newest = next((result for result in reversed(self.results) if result.analysis is not None), None)
        texts = self._probe_notes(newest)
        samples = dict.fromkeys(map(_sample_text, self.results))
        texts += [f"{sample}: sums cover only these blocks" for sample in samples if sample]
        if newest is not None and newest.threads_missing:
            texts.append(f"excluding {units.counted(newest.threads_missing, 'thread')} that did not exit")
        problems = [f"{result.label}: {printable(result.problem)}" for result in self.results if result.problem]
        simulated = ["simulated GPU: counts are exact, as on a GPU"] if self.simulated else []
        return [*texts, *self.extra_notes, *problems, *simulated]

    def _probe_notes(self, newest: AnalysedResult | None) -> list[str]:
        if newest is None or self.probe_notes is None:
            return []
        try:
            return list(self.probe_notes(newest.analysis))
        except TraceError as error:
            return [printable(str(error))]

    def record(self) -> dict[str, Any]:
        """Return the JSON record of every launch with all its values."""
        return {"launches": [*self.content.records()]}

    def cells(self) -> Iterator[Sequence[object]]:
        """Return a row per launch."""
        return self.content.cells()


def _result_columns(results: Sequence[AnalysedResult]) -> list[Column[AnalysedResult]]:
    """Columns of a table of results: one per value that any of them has."""
    keys = dict.fromkeys(metric_value.key for result in results for metric_value in result.metric_values)
    text_values = {
        metric_value.key: metric_value
        for result in results
        for metric_value in result.metric_values
        if metric_value.is_shown
    }
    ranks = {key: place for place, key in enumerate(text_values, 1)}
    sample_columns = [_SAMPLED_COLUMN] if any(result.sample is not None for result in results) else []
    metric_values = [_metric_column(key, text_values.get(key), ranks.get(key, 0)) for key in keys]
    return [*_LAUNCH_COLUMNS, *sample_columns, *metric_values, *_DATA_COLUMNS]


def _metric_column(key: str, title_value: MetricValue | None, rank: int) -> Column[AnalysedResult]:
    """Return the column of a value of each result; for JSON only if the text does not show it."""

    def metric_value(result: AnalysedResult) -> MetricValue | None:
        return next((metric_value for metric_value in result.metric_values if metric_value.key == key), None)

    def value(result: AnalysedResult) -> float | None:
        value = metric_value(result)
        return None if value is None else value.value

    def text(result: AnalysedResult) -> str:
        launch_value = metric_value(result)
        return (
            NOT_MEASURED if launch_value is None else metric_text(launch_value).removesuffix(launch_value.unit).rstrip()
        )

    if title_value is None:
        return Column(key, value)
    title = title_value.label + (f" ({title_value.unit})" if title_value.unit else "")
    return Column(key, value, title, text, rank=0 if title_value.metric.over_launches == "mean" else rank)


def _launch_number(result: AnalysedResult) -> int | None:
    return None if result.launch is None else result.launch.number


def _blocks_of(result: AnalysedResult) -> str:
    return extent_text(result_extent(result)).removesuffix(" blocks") or "all"


_LAUNCH_COLUMNS: Final[tuple[Column[AnalysedResult], ...]] = (
    Column("launch", _launch_number, "launch", lambda result: result.label.removeprefix("launch ")),
    Column("result", lambda result: f"result/{result.file}"),
)
_SAMPLED_COLUMN: Final[Column[AnalysedResult]] = Column("sampled", None, "blocks", _blocks_of, rank=_SAMPLED_RANK)


def count_kind(name: str, title: str, description: str, explanation: tuple[str, ...], order: int) -> ViewKind:
    """Return a kind of view with the values of launches, for the probes that list it among their views."""

    def open_table(source: ViewSource, progress: Progress) -> CountTable:
        return CountTable(source, title, progress)

    return probe_view(name, title, description, open_table, explanation=explanation, order=order, grows=True)


def _sample_text(result: AnalysedResult) -> str:
    return "" if result.sample is None else sampled_blocks_text(result.sample)

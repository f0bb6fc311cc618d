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
OF_PAIRS: Final = "ratio of pairs"
"""Slowdowns, each of two launches: their median is seldom the ratio of the median times."""
_LABEL_CELLS: Final = 14
_VALUE_CELLS: Final = 9
MAX_LISTED_RESULTS: Final = 8
"""Results of a kernel that have a line each."""
MAX_READ_PER_KERNEL: Final = 32
"""Results that are read where there are more: reading all may take minutes, and the spread is much the same."""
MAX_READ_IN_ALL: Final = 512
MIN_READ_PER_KERNEL: Final = 3
"""Minimum number of results per kernel if many kernels share those that are read."""
_COLUMNS: Final[tuple[Column[Spread], ...]] = (
    Column("figure", None, "", lambda s: s.least.label, right=False),
    Column("least", None, "min", lambda s: metric_text(s.least)),
    Column("median", None, "median", lambda s: metric_text(s.median)),
    Column("most", None, "max", lambda s: metric_text(s.most)),
)
_MAX_ROWS: Final = 1000
"""Newest results that a table of launches has."""
_DATA_COLUMNS: Final[tuple[Column[AnalysedResult], ...]] = (
    Column("blocks", lambda result: result.blocks),
    Column("blocks_measured", lambda result: result.blocks_measured),
    Column("threads_missing", lambda result: result.threads_missing),
    Column("problem", lambda result: result.problem),
)
_SAMPLED_RANK: Final = 100
"""Rank of a column that leaves first: a note below the table says the same."""


def distribution_head(label: str = "") -> Line:
    """The titles of the columns; ``label`` says what the values are."""
    return (
        (pad(label, _LABEL_CELLS), "dim"),
        ("".join(pad(title, _VALUE_CELLS, right=True) for title in _SHOWN_PERCENTILES.values()), "head"),
    )


def distribution_without(label: str) -> Line:
    """Return the line of a value that was not measured."""
    return (
        (pad(label, _LABEL_CELLS), "dim"),
        ("".join(pad(NOT_MEASURED, _VALUE_CELLS, right=True) for _ in _SHOWN_PERCENTILES), "dim"),
    )


def distribution_row(label: str, spread: Distribution, show: Callable[[float], str]) -> Line:
    """Return the line of a distribution; ``show`` formats a value in at most 8 characters."""
    values = (spread.percentiles[PERCENTILES.index(percentile)] for percentile in _SHOWN_PERCENTILES)
    return (
        (pad(label, _LABEL_CELLS), "dim"),
        ("".join(pad(show(value), _VALUE_CELLS, right=True) for value in values), ""),
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the median and the most of a value over some results."""

    least: MetricValue
    median: MetricValue
    most: MetricValue


def kernel_result_lines(trace: Trace, kernel: KernelFacts, cells: int, kernels: int) -> Iterator[str]:
    """Return a table of results for one of ``kernels`` kernels, as text; data has every result."""
    share = max(MIN_READ_PER_KERNEL, min(MAX_READ_PER_KERNEL, MAX_READ_IN_ALL // kernels))
    yield from result_lines(trace, kernel, cells, MAX_LISTED_RESULTS, share)
    if len(kernel.result_rows) > MAX_LISTED_RESULTS:
        command = f"tui-probe show results {shell_word(trace.directory)}:{kernel.index}@LAUNCH"
        yield from command_lines("  … to show all results, add --format csv; to show one result, run", command, cells)


def result_lines(trace: Trace, kernel: KernelFacts, cells: int, listed: int, most: int) -> Iterator[str]:
    """A line for each of at most ``listed`` results, else the spread of the values of at most ``most`` of them."""
    rows = kernel.result_rows
    if len(rows) <= listed:
        read = [analyse_result(trace, kernel, row) for row in rows]
        for result in read:
            if not result.problem:
                yield from hang_line(_line(trace, result), cells)
        yield from _problems(trace, read, cells)
        return
    read = [analyse_result(trace, kernel, row) for row in spread_rows(rows, most)]
    part = f", {len(read)} of them read (evenly spaced from first to last)" if len(read) < len(rows) else ""
    simulated = ", simulated" if trace.state.simulated else ""
    yield from hang_line(f"  {units.counted(len(rows), 'result')}{part}{simulated}", cells)
    groups = results_by_extent(result for result in read if result.analysis is not None)
    for extent, results in groups.items():
        if extent is not None:
            yield f"    {_sampled_extent_text(extent, len(results))}"
        elif len(groups) > 1:
            yield f"    {units.counted(len(results), 'launch')}, all blocks measured"
        spreads = metric_spreads(results)
        if spreads:
            yield from (f"    {line}" for line in table(_COLUMNS, spreads, cells - 4))
    yield from _problems(trace, read, cells)


def _problems(trace: Trace, results: Sequence[AnalysedResult], cells: int) -> Iterator[str]:
    """The first result of each problem, and how many others have the same in other files."""
    alike: defaultdict[str, list[AnalysedResult]] = defaultdict(list)
    for result in results:
        if result.problem:
            alike[result.problem.replace(result.file, "")].append(result)
    for first, *others in alike.values():
        more = f" (and {units.counted(len(others), 'other')})" if others else ""
        yield from hang_line(_line(trace, first) + more, cells)


def _sampled_extent_text(extent: BlockExtent, launches: int) -> str:
    return f"{units.counted(launches, 'launch')} sampled, {extent_text(extent)} each: values cover only these blocks"


def _line(trace: Trace, result: AnalysedResult) -> str:
    """Return the line of a result; files of the trace are named as they are in it."""
    return f"  {result.label}: " + result.words.replace(f"{printable(str(trace.directory))}/", "")


def spread_rows(rows: Sequence[int], most: int) -> list[int]:
    """Return up to ``most`` rows, two or more, the first and the last included."""
    if len(rows) <= most:
        return list(rows)
    return [rows[place * (len(rows) - 1) // (most - 1)] for place in range(most)]


def metric_spreads(results: Iterable[AnalysedResult]) -> list[Spread]:
    """Return the spread of each value that text shows and that was measured; positions have no size, and are left
    out.
    """
    by_key: dict[str, list[MetricValue]] = {}
    for result in results:
        for metric_value in result.metric_values:
            if metric_value.shown and metric_value.value is not None and not metric_value.metric.place:
                by_key.setdefault(metric_value.key, []).append(metric_value)
    return [_spread(metric_values) for metric_values in by_key.values()]


def _spread(metric_values: list[MetricValue]) -> Spread:
    values = sorted(metric_value.value for metric_value in metric_values if metric_value.value is not None)
    least, median, most = (
        replace(metric_values[0], value=value) for value in (values[0], median_low(values), values[-1])
    )
    return Spread(least, median, most)


class CountTable(Document):
    """The newest launches of a kernel that have results, or one of them."""

    def __init__(self, source: ViewSource, title: str, progress: Progress, more: Sequence[str] = ()) -> None:
        """``more`` is said below the table."""
        kernel = source.kernel
        self.title = f"{title} of {kernel.demangled}"
        self.name = f"#{kernel.index} {printable(kernel.demangled)}"
        chosen = list(kernel.result_rows) if source.launch is None else [source.launch.result]
        rows = [row for row in chosen if row is not None]
        self.left_out = max(len(rows) - _MAX_ROWS, 0)
        self.results: list[AnalysedResult] = []
        for i, row in enumerate(rows[-_MAX_ROWS:]):
            progress(i / len(rows))
            self.results.append(analyse_result(source.trace, kernel, row))
        self.simulated = source.trace.state.simulated
        self.notes = known_probe(self.results[-1].kernel if self.results else kernel).notes
        self.more = more
        self.content = TableContent("launches", self.title, _result_columns(self.results), self.results)
        self._order = ColumnOrder()

    def lines(self, width: int) -> Sequence[Line]:
        """The table, and what the values of the newest launch say."""
        lines: list[Line] = [((shorten(self.name, width), "title"),)]
        if self.left_out:
            lines.append(
                ((f"newest {units.count(_MAX_ROWS)} of {units.counted(_MAX_ROWS + self.left_out, 'launch')}", "dim"),)
            )
        columns = [self._order.marked(column) for column in self.content.columns]
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
        """Launches in sequence first, values from the largest on; the same column again is reversed."""
        self._arrange(self._order.choose(key, falling=key != "launch"))

    def choices(self) -> Mapping[str, Any]:
        return {"order": self._order}

    def choose(self, choices: Mapping[str, Any]) -> None:
        if choices["order"].key in self.sortable():
            self._arrange(choices["order"])

    def _arrange(self, order: ColumnOrder) -> None:
        value = next(column.value for column in self.content.columns if column.key == order.key)
        assert value is not None
        self._order, self.content.rows = order, order.arranged(self.results, value)

    def _notes(self) -> list[str]:
        newest = next((result for result in reversed(self.results) if result.analysis is not None), None)
        texts = self._probe_notes(newest)
        samples = dict.fromkeys(map(_sample_text, self.results))
        texts += [f"{sample}: sums cover only these blocks" for sample in samples if sample]
        if newest is not None and newest.threads_missing:
            texts.append(f"excluding {units.counted(newest.threads_missing, 'thread')} that did not exit")
        problems = [f"{result.label}: {printable(result.problem)}" for result in self.results if result.problem]
        simulated = ["simulated GPU: counts are exact, as on a GPU"] if self.simulated else []
        return [*texts, *self.more, *problems, *simulated]

    def _probe_notes(self, newest: AnalysedResult | None) -> list[str]:
        if newest is None or self.notes is None:
            return []
        try:
            return list(self.notes(newest.analysis))
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
    shown = {
        metric_value.key: metric_value
        for result in results
        for metric_value in result.metric_values
        if metric_value.shown
    }
    ranks = {key: place for place, key in enumerate(shown, 1)}
    sampled = [_SAMPLED_COLUMN] if any(result.sample is not None for result in results) else []
    metric_values = [_figure_column(key, shown.get(key), ranks.get(key, 0)) for key in keys]
    return [*_LAUNCH_COLUMNS, *sampled, *metric_values, *_DATA_COLUMNS]


def _figure_column(key: str, shown: MetricValue | None, rank: int) -> Column[AnalysedResult]:
    """Return the column of a value of each result; for JSON only if the text does not show it."""

    def metric_value(result: AnalysedResult) -> MetricValue | None:
        return next((metric_value for metric_value in result.metric_values if metric_value.key == key), None)

    def value(result: AnalysedResult) -> float | None:
        value = metric_value(result)
        return None if value is None else value.value

    def text(result: AnalysedResult) -> str:
        known = metric_value(result)
        return NOT_MEASURED if known is None else metric_text(known).removesuffix(known.unit).rstrip()

    if shown is None:
        return Column(key, value)
    title = shown.label + (f" ({shown.unit})" if shown.unit else "")
    return Column(key, value, title, text, rank=0 if shown.metric.over_launches == "mean" else rank)


def _launch_number(result: AnalysedResult) -> int | None:
    return None if result.launch is None else result.launch.number


def _blocks_of(result: AnalysedResult) -> str:
    return extent_text(result_extent(result)).removesuffix(" blocks") or "all"


_LAUNCH_COLUMNS: Final[tuple[Column[AnalysedResult], ...]] = (
    Column("launch", _launch_number, "launch", lambda result: result.label.removeprefix("launch ")),
    Column("result", lambda result: f"result/{result.file}"),
)
_SAMPLED_COLUMN: Final[Column[AnalysedResult]] = Column("sampled", None, "blocks", _blocks_of, rank=_SAMPLED_RANK)


def count_kind(name: str, title: str, about: str, explanation: tuple[str, ...], order: int) -> ViewKind:
    """A view of the values of launches, for the probes that list it among their views."""

    def open_table(source: ViewSource, progress: Progress) -> CountTable:
        return CountTable(source, title, progress)

    return probe_view(name, title, about, open_table, explanation=explanation, order=order, grows=True)


def _sample_text(result: AnalysedResult) -> str:
    return "" if result.sample is None else sampled_blocks_text(result.sample)

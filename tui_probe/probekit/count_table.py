"""What a counting probe found in the launches of one kernel: a row a launch, a column a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.by_line import CountsByLine
from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import wrap
from tui_probe.draw.table import Column, safe, table
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document
from tui_probe.pages.block_report import launch_label
from tui_probe.probekit import probe_results
from tui_probe.probekit.counts import CountedResult, counted_result, figure_text
from tui_probe.probekit.kept import sampled_words
from tui_probe.probekit.kind import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.analysis.counts import Counts, Figure
    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Source

_NEWEST: Final = 1000


class CountTable(Document):
    """The newest launches of a kernel that have results, or one of them."""

    def __init__(self, source: Source, title: str, progress: Progress, notes: Callable[[Counts], list[str]]) -> None:
        kernel = source.kernel
        self.title = f"{title} of {kernel.demangled}"
        self.name = f"#{kernel.index} {safe(kernel.demangled)}"
        chosen = list(kernel.result_rows) if source.launch is None else [source.launch.result]
        rows = [row for row in chosen if row is not None]
        self.left_out = max(len(rows) - _NEWEST, 0)
        probe = probe_results.probe_of(kernel) or ""
        self.results: list[CountedResult] = []
        for i, row in enumerate(rows[-_NEWEST:]):
            progress(i / len(rows))
            self.results.append(counted_result(source.trace, kernel, row, probe))
        self.simulated = source.trace.state.simulated
        self.notes = notes

    def lines(self, width: int) -> Sequence[Line]:
        """The table, and what the figures of the newest launch say."""
        lines: list[Line] = [((shorten(self.name, width), "title"),)]
        if self.left_out:
            lines.append(((f"the newest {_NEWEST} of {_NEWEST + self.left_out} launches", "dim"),))
        head, rule, *rest = table(self._columns(), self.results, width)
        lines += [((head, "head"),), ((rule, "rule"),), *(((line, ""),) for line in rest)]
        for note in self._notes():
            lines += [(), *(((part, ""),) for part in wrap(note, width))]
        return lines

    def _notes(self) -> list[str]:
        newest = next((each.counts for each in reversed(self.results) if each.counts is not None), None)
        found = [] if newest is None else self.notes(newest)
        found += [f"{words}: sums are of these alone" for words in dict.fromkeys(map(_sampled, self.results)) if words]
        if newest is not None and newest.threads_missing:
            found.append(f"without {units.counted(newest.threads_missing, 'thread')} that never left")
        problems = [f"{launch_label(each)}: {safe(each.problem)}" for each in self.results if each.problem]
        return [*found, *problems, *(["simulated GPU: counts are exact, as on a GPU"] if self.simulated else [])]

    def _columns(self) -> list[Column[CountedResult]]:
        columns: list[Column[CountedResult]] = [Column("launch", None, "launch", launch_label, False)]
        shown = {figure.key: figure for each in self.results for figure in _figures(each) if figure.shown}
        for place, (key, figure) in enumerate(shown.items(), 1):
            rank = 0 if "_per_" in key else place
            title = figure.label + (f" ({figure.unit})" if figure.unit else "")
            columns.append(Column(key, None, title, _text_of(key), rank=rank))
        return columns

    def record(self) -> dict[str, Any]:
        """Every launch with all its figures."""
        return {"launches": [dict(zip(self._keys(), row, strict=True)) for row in self._rows()]}

    def cells(self) -> Iterator[Sequence[object]]:
        """A row a launch."""
        yield self._keys()
        yield from self._rows()

    def _keys(self) -> list[str]:
        keys = dict.fromkeys(figure.key for each in self.results for figure in _figures(each))
        return ["launch", "result", *keys, "blocks", "blocks_measured", "threads_missing", "problem"]

    def _rows(self) -> Iterator[list[object]]:
        keys = self._keys()[2:-4]
        for each in self.results:
            values = {figure.key: figure.value for figure in _figures(each)}
            number = None if each.launch is None else each.launch.number
            missing = None if each.counts is None else each.counts.threads_missing
            counted = each.blocks, each.blocks_measured, missing
            yield [number, f"result/{each.file}", *(values.get(key) for key in keys), *counted, each.problem]


def count_kind(
    name: str, title: str, about: str, probes: tuple[str, ...], notes: Callable[[Counts], list[str]]
) -> Kind:
    """The view of probes that count the same, in all or by line."""

    def notes_of(counts: Counts) -> list[str]:
        return notes(counts.whole if isinstance(counts, CountsByLine) else counts)

    return Kind(
        name,
        title,
        about,
        lambda source: probe_results.missing(source, *probes),
        lambda source, progress: CountTable(source, title, progress, notes_of),
        probes,
        grows=True,
    )


def _sampled(result: CountedResult) -> str:
    return "" if result.sample is None else sampled_words(result.sample)


def _figures(result: CountedResult) -> tuple[Figure, ...]:
    return () if result.counts is None else result.counts.figures()


def _text_of(key: str) -> Callable[[CountedResult], str]:
    def text(result: CountedResult) -> str:
        figure = next((each for each in _figures(result) if each.key == key), None)
        return NOT_MEASURED if figure is None else figure_text(figure).removesuffix(figure.unit).rstrip()

    return text

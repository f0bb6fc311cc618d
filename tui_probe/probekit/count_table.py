"""What a counting probe found in the launches of one kernel: one row per launch, one column per figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import wrap
from tui_probe.draw.table import Column, safe, table
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import Document
from tui_probe.errors import TraceError
from tui_probe.probekit.alike import extent_of, extent_words
from tui_probe.probekit.kept import sampled_words
from tui_probe.probekit.measured import Measured, figure_text, measured, probe_of
from tui_probe.probekit.views import probe_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.kind import Kind, Source

_NEWEST: Final = 1000


class CountTable(Document):
    """The newest launches of a kernel that have results, or one of them."""

    def __init__(self, source: Source, title: str, progress: Progress, more: Sequence[str] = ()) -> None:
        """``more`` is said below the table."""
        kernel = source.kernel
        self.title = f"{title} of {kernel.demangled}"
        self.name = f"#{kernel.index} {safe(kernel.demangled)}"
        chosen = list(kernel.result_rows) if source.launch is None else [source.launch.result]
        rows = [row for row in chosen if row is not None]
        self.left_out = max(len(rows) - _NEWEST, 0)
        self.results: list[Measured] = []
        for i, row in enumerate(rows[-_NEWEST:]):
            progress(i / len(rows))
            self.results.append(measured(source.trace, kernel, row))
        self.simulated = source.trace.state.simulated
        self.notes = probe_of(self.results[-1].kernel if self.results else kernel).notes
        self.more = more

    def lines(self, width: int) -> Sequence[Line]:
        """The table, and what the figures of the newest launch say."""
        lines: list[Line] = [((shorten(self.name, width), "title"),)]
        if self.left_out:
            lines.append(
                ((f"the newest {units.count(_NEWEST)} of {units.counted(_NEWEST + self.left_out, 'launch')}", "dim"),)
            )
        head, rule, *rest = table(self._columns(), self.results, width)
        lines += [((head, "head"),), ((rule, "rule"),), *(((line, ""),) for line in rest)]
        for note in self._notes():
            lines += [(), *(((part, ""),) for part in wrap(note, width))]
        return lines

    def _notes(self) -> list[str]:
        newest = next((each for each in reversed(self.results) if each.analysis is not None), None)
        found = self._said_of(newest)
        samples = dict.fromkeys(map(_sampled, self.results))
        found += [f"{words}: sums are of these blocks only" for words in samples if words]
        if newest is not None and newest.threads_missing:
            found.append(f"excluding {units.counted(newest.threads_missing, 'thread')} that did not exit")
        problems = [f"{each.label}: {safe(each.problem)}" for each in self.results if each.problem]
        simulated = ["simulated GPU: counts are exact, as on a GPU"] if self.simulated else []
        return [*found, *self.more, *problems, *simulated]

    def _said_of(self, newest: Measured | None) -> list[str]:
        if newest is None or self.notes is None:
            return []
        try:
            return list(self.notes(newest.analysis))
        except TraceError as error:
            return [safe(str(error))]

    def _columns(self) -> list[Column[Measured]]:
        columns: list[Column[Measured]] = [Column("launch", None, "launch", lambda each: each.label, False)]
        shown = {figure.key: figure for each in self.results for figure in each.figures if figure.shown}
        if any(each.sample is not None for each in self.results):
            columns.append(Column("blocks", None, "blocks", _blocks_of))
        for place, (key, figure) in enumerate(shown.items(), 1):
            rank = 0 if figure.metric.over_launches == "mean" else place
            title = figure.label + (f" ({figure.unit})" if figure.unit else "")
            columns.append(Column(key, None, title, _text_of(key), rank=rank))
        return columns

    def record(self) -> dict[str, Any]:
        """Every launch with all its figures."""
        return {"launches": [dict(zip(self._keys(), row, strict=True)) for row in self._rows()]}

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per launch."""
        yield self._keys()
        yield from self._rows()

    def _keys(self) -> list[str]:
        keys = dict.fromkeys(figure.key for each in self.results for figure in each.figures)
        return ["launch", "result", *keys, "blocks", "blocks_measured", "threads_missing", "problem"]

    def _rows(self) -> Iterator[list[object]]:
        keys = self._keys()[2:-4]
        for each in self.results:
            values = {figure.key: figure.value for figure in each.figures}
            number = None if each.launch is None else each.launch.number
            counted = each.blocks, each.blocks_measured, each.threads_missing
            yield [number, f"result/{each.file}", *(values.get(key) for key in keys), *counted, each.problem]


def count_kind(name: str, title: str, about: str, explanation: tuple[str, ...], order: int) -> Kind:
    """A view of the figures of launches, for the probes that list it among their views."""

    def open_table(source: Source, progress: Progress) -> CountTable:
        return CountTable(source, title, progress)

    return probe_view(name, title, about, open_table, explanation=explanation, order=order, grows=True)


def _blocks_of(result: Measured) -> str:
    return extent_words(extent_of(result)) or "all"


def _sampled(result: Measured) -> str:
    return "" if result.sample is None else sampled_words(result.sample)


def _text_of(key: str) -> Callable[[Measured], str]:
    def text(result: Measured) -> str:
        figure = next((each for each in result.figures if each.key == key), None)
        return NOT_MEASURED if figure is None else figure_text(figure).removesuffix(figure.unit).rstrip()

    return text

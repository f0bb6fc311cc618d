"""The results of a kernel in a few lines: one for each of a few, else the spread of the figures of some."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median_low
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.hanging import hanging
from tui_probe.draw.shell import command_lines, shell_word
from tui_probe.draw.table import Column, safe, table
from tui_probe.probekit.alike import by_extent, extent_words
from tui_probe.probekit.measured import figure_text, measured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.probekit.alike import Extent
    from tui_probe.probekit.measured import Measured
    from tui_probe.probekit.metric import Figure
    from tui_probe.trace.model import Kernel, Trace

LISTED: Final = 8
"""Results of a kernel that have a line each."""
READ: Final = 32
"""Results that are read where there are more: reading all may take minutes, and the spread is much the same."""
READ_IN_ALL: Final = 512
LEAST_READ: Final = 3
"""Where there are many kernels each has its share of those that are read, and no less than this."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the median and the most of a figure over some results."""

    least: Figure
    median: Figure
    most: Figure


def kernel_lines(trace: Trace, kernel: Kernel, cells: int, kernels: int) -> Iterator[str]:
    """What was measured of one of so many ``kernels``, for text; data has every result."""
    share = max(LEAST_READ, min(READ, READ_IN_ALL // kernels))
    yield from few_lines(trace, kernel, cells, LISTED, share)
    if len(kernel.result_rows) > LISTED:
        one = f"tui-probe show results {shell_word(trace.directory)}:{kernel.index}@LAUNCH"
        yield from command_lines("  … every result: --format csv; one:", one, cells)


def few_lines(trace: Trace, kernel: Kernel, cells: int, listed: int, most: int) -> Iterator[str]:
    """A line for each of at most ``listed`` results, else the spread of the figures of at most ``most`` of them."""
    rows = kernel.result_rows
    if len(rows) <= listed:
        for row in rows:
            yield from hanging(_line(trace, measured(trace, kernel, row)), cells)
        return
    read = [measured(trace, kernel, row) for row in spread_rows(rows, most)]
    part = f", {len(read)} of them read, evenly spread" if len(read) < len(rows) else ""
    simulated = ", simulated" if trace.state.simulated else ""
    yield from hanging(f"  {units.counted(len(rows), 'result')}{part}{simulated}", cells)
    groups = by_extent(result for result in read if result.analysis is not None)
    for extent, results in groups.items():
        if extent is not None:
            yield f"    {_sampled(extent, len(results))}"
        elif len(groups) > 1:
            yield f"    {units.counted(len(results), 'launch')} of all blocks"
        spreads = spreads_of(results)
        if spreads:
            yield from (f"    {line}" for line in table(_COLUMNS, spreads, cells - 4))
    yield from _problems(trace, read, cells)


def _problems(trace: Trace, results: Sequence[Measured], cells: int) -> Iterator[str]:
    """The first result of each problem, and how many others have it."""
    alike: defaultdict[str, list[Measured]] = defaultdict(list)
    for result in results:
        if result.problem:
            alike[result.problem].append(result)
    for first, *others in alike.values():
        more = f" (and {units.counted(len(others), 'other')})" if others else ""
        yield from hanging(_line(trace, first) + more, cells)


def _sampled(extent: Extent, launches: int) -> str:
    return f"{units.counted(launches, 'launch')} sampled, {extent_words(extent)} each: numbers of these blocks only"


def _line(trace: Trace, result: Measured) -> str:
    """One result; files of the trace are named as they are in it."""
    return f"  {result.label}: " + result.words.replace(f"{safe(str(trace.directory))}/", "")


def spread_rows(rows: Sequence[int], most: int) -> list[int]:
    """At most so many of them, two or more, the first and the last included."""
    if len(rows) <= most:
        return list(rows)
    return [rows[place * (len(rows) - 1) // (most - 1)] for place in range(most)]


def spreads_of(results: Iterable[Measured]) -> list[Spread]:
    """Of each figure that text shows and that was measured; a place has no size, and is left out."""
    found: dict[str, list[Figure]] = {}
    for result in results:
        for figure in result.figures:
            if figure.shown and figure.value is not None and not figure.metric.place:
                found.setdefault(figure.key, []).append(figure)
    return [_spread(figures) for figures in found.values()]


def _spread(figures: list[Figure]) -> Spread:
    values = sorted(figure.value for figure in figures if figure.value is not None)
    least, median, most = (replace(figures[0], value=value) for value in (values[0], median_low(values), values[-1]))
    return Spread(least, median, most)


_COLUMNS: Final[tuple[Column[Spread], ...]] = (
    Column("figure", None, "", lambda s: s.least.label, False),
    Column("least", None, "least", lambda s: figure_text(s.least)),
    Column("median", None, "median", lambda s: figure_text(s.median)),
    Column("most", None, "most", lambda s: figure_text(s.most)),
)

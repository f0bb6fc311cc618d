"""The counts of a trace: a line a result in text, a row a figure in data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.draw.hanging import hanging
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column, safe
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.pages.block_report import launch_label
from tui_probe.probekit.counts import CountedResult, counted_results, counts_line, figure_text, probe_name, probe_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.counts import Figure
    from tui_probe.trace.model import Trace


class CountRow(NamedTuple):
    """One figure of one result; no figure where the result has a problem."""

    result: CountedResult
    figure: Figure | None


def count_lines(trace: Trace, cells: int, *, most: int | None = None) -> Iterator[str]:
    """The page as text: the kernels, and under each its results. Nothing if no kernel has any."""
    for kernel in trace.kernels:
        probe = probe_of(kernel)
        if probe is None:
            continue
        name = safe(probe_name(kernel, probe))
        yield from hanging(f"#{kernel.index} {shorten(safe(kernel.demangled), cells - 24)}  {name}", cells)
        for result in counted_results(trace, kernel, most=most):
            yield from hanging(f"  {launch_label(result)}: {said(result)}", cells)
        more = len(kernel.result_rows) - (most or len(kernel.result_rows))
        if more > 0:
            yield f"  and {more} more: tui-probe report {safe(str(trace.directory))} --page counts"


def page_lines(trace: Trace, cells: int) -> Iterator[str]:
    """The page, or how to get one."""
    lines = count_lines(trace, cells)
    first = next(lines, None)
    yield "No kernel has results of a counting probe: run with one, such as -p gmem_bytes." if first is None else first
    yield from lines


def said(result: CountedResult) -> str:
    """The counts in one line, or why there are none."""
    if result.counts is None:
        return safe(result.problem or NOT_MEASURED)
    return counts_line(result.counts, result.sample) + ("  simulated" if result.kernel.trace.state.simulated else "")


def count_rows(trace: Trace) -> Iterator[CountRow]:
    """Every figure of every result."""
    for kernel in trace.kernels:
        for result in counted_results(trace, kernel):
            if result.counts is None:
                yield CountRow(result, None)
            else:
                yield from (CountRow(result, figure) for figure in result.counts.figures())


def _missing(row: CountRow) -> int | None:
    return None if row.result.counts is None else row.result.counts.threads_missing


COUNT_COLUMNS: Final[tuple[Column[CountRow], ...]] = (
    Column("kernel", lambda r: r.result.kernel.index, "#", lambda r: str(r.result.kernel.index)),
    Column("name", lambda r: r.result.kernel.name),
    Column("demangled", lambda r: r.result.kernel.demangled, "kernel", lambda r: r.result.kernel.demangled, False),
    Column(
        "launch",
        lambda r: r.result.launch.number if r.result.launch else None,
        "launch",
        lambda r: launch_label(r.result),
        False,
    ),
    Column("result", lambda r: f"result/{r.result.file}"),
    Column("probe", lambda r: _probe(r), "probe", lambda r: _probe(r), False),
    Column("figure", lambda r: r.figure.key if r.figure else None, "figure", lambda r: _label(r), False),
    Column("value", lambda r: r.figure.value if r.figure else None, "value", lambda r: _value(r)),
    Column("unit", lambda r: r.figure.unit or None if r.figure else None),
    Column("blocks", lambda r: r.result.blocks),
    Column("blocks_measured", lambda r: r.result.blocks_measured),
    Column("threads_missing", _missing),
    Column("simulated", lambda r: r.result.kernel.trace.state.simulated),
    Column("problem", lambda r: r.result.problem, "problem", lambda r: r.result.problem or "", False),
)
"""A row a figure: ``value`` is null where a figure was not measured; ``unit`` is null for plain counts.

Sums are of the ``blocks_measured``, which are fewer than ``blocks`` where a sample was taken.
"""


def _probe(row: CountRow) -> str:
    return probe_name(row.result.kernel, row.result.probe)


def _label(row: CountRow) -> str:
    return row.figure.label if row.figure else ""


def _value(row: CountRow) -> str:
    return figure_text(row.figure) if row.figure else NOT_MEASURED

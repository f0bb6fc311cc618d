"""What probes measured in a trace: one line per result in text, one row per figure in data."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.draw import units
from tui_probe.draw.hanging import hanging
from tui_probe.draw.shell import shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column, safe
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.draw.view import each_told, no_progress
from tui_probe.pages.not_probed import IN_VAIN, in_vain_lines
from tui_probe.pages.time_columns import by_share
from tui_probe.probekit.many import few_lines, kernel_lines
from tui_probe.probekit.measured import UNKNOWN, Measured, all_measured, figure_text, name_of_probe, probe_of
from tui_probe.probekit.registry import probe_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.metric import Figure
    from tui_probe.trace.model import Kernel, Trace


class FigureRow(NamedTuple):
    """One figure of one result; no figure where the result has a problem."""

    result: Measured
    figure: Figure | None


LISTED: Final = 2
"""Results of a kernel that have a line each in the report of a run."""
READ: Final = 12
"""Results of a kernel that are read for the spread of its figures there."""


def result_lines(trace: Trace, cells: int, seconds: float | None = None) -> Iterator[str]:
    """The kernels with most GPU time first, and under each the spread of what was measured. Nothing without results.

    Reading ends after so many ``seconds``: the kernels that are left are counted.
    """
    kernels, told = _with_results(trace), set[str]()
    page = f"tui-probe report {shell_word(trace.directory)} --page results"
    latest = None if seconds is None else time.monotonic() + seconds
    for place, kernel in enumerate(kernels):
        if latest is not None and time.monotonic() > latest:
            yield f"and {units.counted(len(kernels) - place, 'kernel')} more: {page}"
            return
        yield from _heading(kernel, cells, told)
        yield from few_lines(trace, kernel, cells, LISTED, READ)


def page_lines(trace: Trace, cells: int, progress: Progress = no_progress) -> Iterator[str]:
    """The page as text, or how to get one: the kernels, and what was measured of each."""
    kernels, told = _with_results(trace), set[str]()
    in_vain = in_vain_lines(trace, cells)
    if not kernels and not in_vain:
        yield "No kernel has results: run a program under a probe: tui-probe run."
    for kernel in each_told(kernels, progress):
        yield from _heading(kernel, cells, told)
        yield from kernel_lines(trace, kernel, cells, len(kernels))
    if in_vain:
        yield from ([""] if kernels else [])
        yield IN_VAIN
        yield from (part for line in in_vain for part in hanging(f"  {line}", cells))


def lines_of_kernel(trace: Trace, kernel: Kernel, cells: int, kernels: int) -> Iterator[str]:
    """What each probe measured of one of so many ``kernels``, under its name. Nothing without results."""
    for one in kernel.by_probe():
        if one.result_rows:
            yield from _heading(one, cells, set())
            yield from kernel_lines(trace, one, cells, kernels)


def _with_results(trace: Trace) -> list[Kernel]:
    """The kernels that have results, once for each probe; those with most GPU time first.

    One in which a probe of one's own matched nothing is not among them: it is told with all others of which that holds.
    """
    kernels = chain.from_iterable(kernel.by_probe() for kernel in by_share(trace.kernels))
    return [each for each in kernels if each.result_rows and not (each.matched_nothing and probe_of(each) is UNKNOWN)]


def _heading(kernel: Kernel, cells: int, told: set[str]) -> Iterator[str]:
    """The kernel and its probe; and how to read the lines of a probe that was not ``told`` of yet."""
    name = safe(name_of_probe(kernel))
    yield from hanging(f"#{kernel.index} {shorten(safe(kernel.demangled), cells - 24)}  {name}", cells)
    probe = probe_named(name)
    if probe is not None and probe.line_about not in told | {""}:
        told.add(probe.line_about)
        yield from hanging(f"  {probe.line_about}", cells)


def figure_rows(trace: Trace, progress: Progress = no_progress) -> Iterator[FigureRow]:
    """Every figure of every result."""
    for kernel in each_told(trace.kernels, progress):
        for result in all_measured(trace, kernel):
            if result.analysis is None:
                yield FigureRow(result, None)
            else:
                yield from (FigureRow(result, figure) for figure in result.figures)


FIGURE_COLUMNS: Final[tuple[Column[FigureRow], ...]] = (
    Column("kernel", lambda r: r.result.kernel.index, "#", lambda r: str(r.result.kernel.index)),
    Column("name", lambda r: r.result.kernel.name),
    Column(
        "demangled",
        lambda r: r.result.kernel.demangled,
        "kernel",
        lambda r: r.result.kernel.demangled,
        False,
        0,
        16,
        shorten,
    ),
    Column(
        "launch",
        lambda r: r.result.launch.number if r.result.launch else None,
        "launch",
        lambda r: r.result.label,
        False,
    ),
    Column("result", lambda r: f"result/{r.result.file}"),
    Column("probe", lambda r: _probe(r), "probe", lambda r: _probe(r), False),
    Column("figure", lambda r: r.figure.key if r.figure else None, "figure", lambda r: _label(r), False),
    Column("value", lambda r: r.figure.value if r.figure else None, "value", lambda r: _value(r)),
    Column("unit", lambda r: r.figure.unit or None if r.figure else None),
    Column("blocks", lambda r: r.result.blocks),
    Column("blocks_measured", lambda r: r.result.blocks_measured),
    Column("threads_missing", lambda r: r.result.threads_missing),
    Column("simulated", lambda r: r.result.kernel.trace.state.simulated),
    Column("problem", lambda r: r.result.problem, "problem", lambda r: r.result.problem or "", False),
)
"""One row per figure: ``value`` is null where a figure was not measured; ``unit`` is null for plain counts.

Sums are of the ``blocks_measured``, which are fewer than ``blocks`` where a sample was taken.
"""


def _probe(row: FigureRow) -> str:
    return name_of_probe(row.result.kernel)


def _label(row: FigureRow) -> str:
    return row.figure.label if row.figure else ""


def _value(row: FigureRow) -> str:
    return figure_text(row.figure) if row.figure else NOT_MEASURED

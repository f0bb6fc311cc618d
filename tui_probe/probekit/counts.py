"""What counting probes found: the analysis of each by its callback, and its figures in one line.

A probe of one's own, which names no analysis, is counted map by map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from tui_probe.analysis import (
    barrier_wait,
    divergence,
    dmat,
    gmem_bytes,
    gmem_sectors,
    inst_mix,
    nan_check,
    own_probe,
    program_progress,
    smem_conflicts,
    tensorop_count,
    warp_progress,
)
from tui_probe.analysis.accesses import read_accesses
from tui_probe.draw import units
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.probekit.analyses import BLOCK_SCHED
from tui_probe.probekit.kept import sampled_words
from tui_probe.probekit.own_probes import own_maps
from tui_probe.trace.allocations import LaunchMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.analysis.counts import Counts, Figure
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.trace.result_sample import Sample
    from tui_probe.trace.results import Result


def _accesses(result: Result, kernel: Kernel, *, compact: bool) -> Counts:
    accesses = read_accesses(result, compact=compact, memory=LaunchMemory(), simulated=kernel.trace.state.simulated)
    return dmat.summary(accesses, kernel.folder)


@dataclass(frozen=True, slots=True)
class Untimed:
    """What was counted on a simulated GPU, whose nanoseconds are no times."""

    counts: Counts

    @property
    def threads_missing(self) -> int:
        return self.counts.threads_missing

    def figures(self) -> tuple[Figure, ...]:
        """The figures, without values of those in nanoseconds."""
        return tuple(
            replace(each, value=None, shown=False) if each.unit == "ns" else each for each in self.counts.figures()
        )


def _timed(counts: Counts, kernel: Kernel) -> Counts:
    return Untimed(counts) if kernel.trace.state.simulated else counts


def _sites(kernel: Kernel) -> tuple[int, ...]:
    """The lines of what a kernel's first map has a record for."""
    return kernel.info.sites.get(0, ()) if kernel.info else ()


def _clock_khz(kernel: Kernel) -> int | None:
    """The highest SM clock, for launches too short to measure it."""
    device = kernel.trace.state.device
    return device.clock_khz or None if device else None


OWN: Final = "own probe"
"""Stands for the name of a probe whose results have no analysis."""
ANALYSES: Final[dict[str, Callable[[Result, Kernel], Counts]]] = {
    "barrier_wait": lambda result, _: barrier_wait.analyse(result),
    "barrier_wait_by_line": lambda result, kernel: barrier_wait.analyse_lines(result, _sites(kernel), kernel.folder),
    "divergence": lambda result, _: divergence.analyse(result),
    "divergence_by_line": lambda result, kernel: divergence.analyse_lines(result, _sites(kernel), kernel.folder),
    "dmat": lambda result, kernel: _accesses(result, kernel, compact=False),
    "dmat_compact": lambda result, kernel: _accesses(result, kernel, compact=True),
    "gmem_bytes": lambda result, _: gmem_bytes.analyse(result),
    "gmem_bytes_by_line": lambda result, kernel: gmem_bytes.analyse_lines(result, _sites(kernel), kernel.folder),
    "gmem_sectors": lambda result, _: gmem_sectors.analyse(result),
    "gmem_sectors_by_line": lambda result, kernel: gmem_sectors.analyse_lines(result, _sites(kernel), kernel.folder),
    "inst_mix": lambda result, _: inst_mix.analyse(result),
    "inst_mix_by_line": lambda result, kernel: inst_mix.analyse_lines(result, _sites(kernel), kernel.folder),
    "nan_check": lambda result, kernel: nan_check.analyse(result, kernel.folder),
    "program_progress": lambda result, kernel: program_progress.analyse(result, _clock_khz(kernel), kernel.folder),
    "smem_conflicts": lambda result, _: smem_conflicts.analyse(result),
    "smem_conflicts_by_line": lambda result, kernel: smem_conflicts.analyse_lines(
        result, _sites(kernel), kernel.folder
    ),
    "tensorop_count": lambda result, _: tensorop_count.analyse(result),
    "tensorop_count_by_line": lambda result, kernel: tensorop_count.analyse_lines(
        result, _sites(kernel), kernel.folder
    ),
    "warp_progress": lambda result, kernel: _timed(warp_progress.analyse(result, _clock_khz(kernel)), kernel),
    OWN: lambda result, kernel: own_probe.analyse(result, own_maps(kernel.trace.directory)),
}


@dataclass(frozen=True, slots=True)
class CountedResult:
    """One result file and what its probe counted, or why there is nothing. ``launch`` is None if the log is silent.

    Where only a ``sample`` of the blocks was measured the counts are theirs alone. ``blocks`` are those of the grid,
    None if the file cannot be read.
    """

    kernel: Kernel
    probe: str
    file: str
    launch: Launch | None
    counts: Counts | None
    problem: str | None
    blocks: int | None = None
    sample: Sample | None = None

    @property
    def blocks_measured(self) -> int | None:
        """The blocks that the counts are of."""
        return self.blocks if self.sample is None else len(self.sample.blocks)


def counting_probe(callback: str | None) -> str | None:
    """The counting probe whose analysis a callback names; ``OWN`` of a probe without one; None of ``block_sched``."""
    name = (callback or "").removesuffix(".py")
    if name in BLOCK_SCHED:
        return None
    return name if name in ANALYSES else OWN


def probe_of(kernel: Kernel) -> str | None:
    """The counting probe of a kernel that has results."""
    info = kernel.info
    return counting_probe(info.callback) if info is not None and kernel.result_rows else None


def probe_name(kernel: Kernel, probe: str) -> str:
    """The name of its counting probe; of one's own that of the probe file, where the trace tells."""
    run = kernel.trace.run_info
    return PurePath(run.probe).stem if probe == OWN and run is not None and run.probe else probe


def counted_results(trace: Trace, kernel: Kernel, *, most: int | None = None) -> Iterator[CountedResult]:
    """The results of a kernel, analysed, the oldest first, at most ``most`` of them."""
    probe = probe_of(kernel)
    if probe is not None:
        yield from (counted_result(trace, kernel, row, probe) for row in kernel.result_rows[:most])


def counted_result(trace: Trace, kernel: Kernel, row: int, probe: str) -> CountedResult:
    """The result in a row of the result table, which is one of this kernel's, analysed."""
    number, file, path = trace.results.launch(row), trace.results.name(row), trace.results.path(row)
    launch = None if number is None else trace.launches[number]
    result = None
    try:
        if path is None:
            raise TraceError(f"result/{file}: the log names it, and it leads out of the trace")
        result = kernel.read(path)
        counts, problem = ANALYSES[probe](result, kernel), None
    except TraceError as error:
        counts, problem = None, str(error)
    if result is None:
        return CountedResult(kernel, probe, file, launch, counts, problem)
    return CountedResult(kernel, probe, file, launch, counts, problem, result.header.blocks, result.sample)


def counts_line(counts: Counts, sample: Sample | None = None) -> str:
    """The figures in one line, which blocks they are of if not of all, and what is missing in them."""
    words = [f"{figure.label} {figure_text(figure)}" for figure in counts.figures() if figure.shown]
    missing = counts.threads_missing
    return "".join(
        (
            ", ".join(words),
            f"  ({sampled_words(sample)})" if sample else "",
            f"  (without {units.counted(missing, 'thread')} that never left)" if missing else "",
        )
    )


def figure_text(figure: Figure) -> str:
    """``40 000 B``, ``3.25``, or ``–``."""
    if figure.value is None:
        return NOT_MEASURED
    whole = isinstance(figure.value, int)
    return f"{units.count(int(figure.value)) if whole else f'{figure.value:.2f}'} {figure.unit}".rstrip()

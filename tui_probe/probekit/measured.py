"""What a probe measured of one launch: the analysis of its result, and its figures in one line.

A probe that is not known here is read map by map.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.table import safe
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.probe_files.between import lines_of
from tui_probe.probekit import own_probe, probe_results
from tui_probe.probekit.kept import sampled_words
from tui_probe.probekit.own_probes import own_maps
from tui_probe.probekit.probe import Probe
from tui_probe.probekit.registry import probe_named
from tui_probe.trace.offset import Offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.metric import Figure
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, Run
    from tui_probe.trace.result_sample import Sample


def _map_by_map(of: ProbeResult) -> own_probe.OwnCounts:
    """Raises TraceError where the probe matched nothing: its records then hold what its registers began with."""
    if of.kernel.matched_nothing:
        raise TraceError(of.kernel.reason or NOT_MEASURED)
    return own_probe.analyse(of.result, own_maps(of.kernel.trace.directory, of.kernel.probe))


UNKNOWN: Final = Probe(name="own probe", analyse=_map_by_map, figures=own_probe.OwnCounts.figures)
"""Stands for a probe that is not known here."""


def first_value(of: ProbeResult) -> str:
    """What the first map of a probe without an analysis has in its first field; "" where that cannot be told."""
    try:
        return _map_by_map(of).first_value
    except TraceError:
        return ""


@dataclass(frozen=True, slots=True)
class Measured:
    """One result file and its analysis, or the ``problem`` for which there is none. ``launch`` is None if the log is
    silent.

    Where only a ``sample`` of the blocks was measured the figures are of these only. ``blocks`` are those of the grid,
    None if the file cannot be read.
    """

    kernel: Kernel
    probe: Probe
    file: str
    launch: Launch | None
    analysis: Any
    problem: str | None
    blocks: int | None = None
    sample: Sample | None = None
    figures: tuple[Figure, ...] = ()
    """Its numbers; none where it has a problem."""

    @property
    def blocks_measured(self) -> int | None:
        """The blocks that the figures are of."""
        return self.blocks if self.sample is None else len(self.sample.blocks)

    @property
    def threads_missing(self) -> int | None:
        """Threads that did not exit, so that their counts are missing; None where that is not known."""
        return None if self.analysis is None else getattr(self.analysis, "threads_missing", 0)

    @property
    def label(self) -> str:
        """``launch 7``, or the file where the log does not say the launch."""
        return f"result/{self.file}" if self.launch is None else f"launch {self.launch.number}"

    @property
    def words(self) -> str:
        """What was measured in one line, or why nothing was."""
        if self.analysis is None:
            return safe(self.problem or NOT_MEASURED)
        shown = (f"{figure.label} {figure_text(figure)}" for figure in self.figures if figure.shown)
        try:
            said = ", ".join(shown) if self.probe.line is None else self.probe.line(self.analysis)
        except TraceError as error:
            return safe(str(error))
        sample = f"  ({sampled_words(self.sample)})" if self.sample else ""
        missing = f"  (excluding {units.counted(self.threads_missing or 0, 'thread')} that did not exit)"
        simulated = "  simulated" if self.kernel.trace.state.simulated else ""
        return f"{said}{sample}{missing if self.threads_missing else ''}{simulated}"


def probe_of(kernel: Kernel) -> Probe:
    """The probe of a kernel, or ``UNKNOWN``."""
    return probe_named(probe_results.probe_of(kernel)) or UNKNOWN


def name_of_probe(kernel: Kernel) -> str:
    """Its name, known or not; that of a probe of one's own is its file's, where the trace tells."""
    if kernel.probings:
        return ", ".join(kernel.probings)
    name = probe_results.probe_of(kernel)
    run = kernel.trace.run_info
    if name or run is None or not run.probe:
        return name or UNKNOWN.name
    return lines_probe(kernel) or PurePath(run.probe).stem


def lines_probe(kernel: Kernel) -> str:
    """How the only probe of a run is named that is for lines of source; "" where it is another."""
    run = kernel.trace.run_info
    name = run.probe if run is not None and run.probe else ""
    return name if lines_of(name) and not kernel.probings else ""


def all_measured(trace: Run, kernel: Kernel, *, most: int | None = None) -> Iterator[Measured]:
    """The results of a kernel, analysed, the oldest first, at most ``most`` of them."""
    return (measured(trace, kernel, row) for row in kernel.result_rows[:most])


def measured(trace: Run, kernel: Kernel, row: int) -> Measured:
    """The result in a row of the result table, which is one of this kernel's, analysed."""
    kernel = kernel.with_probe(trace.results.probe(row))
    number, file, probe = trace.results.launch(row), trace.results.name(row), probe_of(kernel)
    launch = None if number is None else trace.launches[number]
    found, analysis, problem = None, None, None
    figures: tuple[Figure, ...] = ()
    try:
        found = probe_results.read_row(trace, kernel, row)
        analysed = probe.analyse(found)
        figures, analysis = probe.figures_in(analysed), analysed
    except TraceError as error:
        problem = str(error)
    if found is None:
        return Measured(kernel, probe, file, launch, analysis, problem)
    header, sample = found.result.header, found.result.sample
    return Measured(kernel, probe, file, launch, analysis, problem, header.blocks, sample, figures)


def figure_text(figure: Figure) -> str:
    """``40 000 B``, ``3.25``, or ``–``; of a place in machine code its offset: ``0x0150``."""
    if figure.value is None:
        return NOT_MEASURED
    if isinstance(figure.value, Offset):
        return f"{figure.value:#06x}"
    whole = isinstance(figure.value, int)
    return f"{units.count(int(figure.value)) if whole else units.decimal(figure.value)} {figure.unit}".rstrip()

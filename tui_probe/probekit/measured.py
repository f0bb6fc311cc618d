"""Analysed results: the metrics of one launch, means of quantities, and results of equal extent.

Results of an unknown probe are read map by map.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.probe_files.option_probes import line_range_of
from tui_probe.probekit import custom_probe, probe_results
from tui_probe.probekit.custom_probe import custom_maps
from tui_probe.probekit.probe import Probe
from tui_probe.probekit.recognised import analysis_name, unnamed_probe_advice
from tui_probe.probekit.record_counts import sampled_blocks_text
from tui_probe.probekit.registry import probe_named, probe_names_where
from tui_probe.trace.kernel_files import Offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.probekit.metric import MetricValue, Quantity
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.map_records import Sample
    from tui_probe.trace.model import KernelFacts, ProbedKernel, Run

BlockExtent = tuple[int, int] | None
"""Blocks that were measured, and those of the grid; None for all of any grid."""


def _analyse_map_by_map(probe_result: ProbeResult) -> custom_probe.CustomCounts:
    """Return the counts of each map. Raises TraceError if the probe matched nothing: the records are then initial
    values.
    """
    if probe_result.kernel.matched_nothing:
        raise TraceError(probe_result.kernel.reason or NOT_MEASURED)
    if advice := unnamed_probe_advice(probe_result.kernel):
        raise TraceError(advice)
    return custom_probe.analyse_custom(
        probe_result.result, custom_maps(probe_result.kernel.trace.directory, probe_result.kernel.probe)
    )


UNKNOWN_PROBE: Final = Probe(
    name="own probe", analyse=_analyse_map_by_map, values_of=custom_probe.CustomCounts.metric_values
)
"""Stands for a probe that is neither built in nor installed."""


def first_value(probe_result: ProbeResult) -> str:
    """Return the first field of the first map of a probe without an analysis; "" if it is unknown."""
    try:
        return _analyse_map_by_map(probe_result).first_value
    except TraceError:
        return ""


@dataclass(frozen=True, slots=True)
class AnalysedResult:
    """One result file and its analysis, or the ``problem`` why it has none. ``launch`` is None if the log does not name
    it.

    If only a ``sample`` of the blocks was measured, the values cover only these. ``blocks`` is the number of blocks of
    the grid, None if the file cannot be read.
    """

    kernel: ProbedKernel
    probe: Probe
    file: str
    launch: Launch | None
    analysis: Any
    problem: str | None
    blocks: int | None = None
    sample: Sample | None = None
    metric_values: tuple[MetricValue, ...] = ()
    """Values; none if the result has a problem."""

    @property
    def blocks_measured(self) -> int | None:
        """The number of blocks that the values cover."""
        return self.blocks if self.sample is None else len(self.sample.blocks)

    @property
    def threads_missing(self) -> int | None:
        """Number of threads that did not exit, so that their counts are missing; None if unknown."""
        return None if self.analysis is None else getattr(self.analysis, "threads_missing", 0)

    @property
    def label(self) -> str:
        """``launch 7``, or the file if the log does not name the launch."""
        return f"result/{self.file}" if self.launch is None else f"launch {self.launch.number}"

    @property
    def words(self) -> str:
        """Measured values in one line, or the reason why there are none."""
        if self.analysis is None:
            return printable(self.problem or NOT_MEASURED)
        value_texts = (
            f"{metric_value.label} {metric_text(metric_value)}"
            for metric_value in self.metric_values
            if metric_value.is_shown
        )
        try:
            text = ", ".join(value_texts) if self.probe.launch_line is None else self.probe.launch_line(self.analysis)
        except TraceError as error:
            return printable(str(error))
        sample = f"  ({sampled_blocks_text(self.sample)})" if self.sample else ""
        missing_threads = f"  (excluding {units.counted(self.threads_missing or 0, 'thread')} that did not exit)"
        simulated = "  simulated" if self.kernel.trace.state.simulated else ""
        return f"{text}{sample}{missing_threads if self.threads_missing else ''}{simulated}"


def known_probe(kernel: KernelFacts) -> Probe:
    """Return the probe of a kernel, or ``UNKNOWN_PROBE``."""
    return probe_named(analysis_name(kernel)) or UNKNOWN_PROBE


def probe_name(kernel: KernelFacts) -> str:
    """Return the probe's name, known or not; for a custom probe that of its file, if the trace has it."""
    if kernel.combined_probes:
        return ", ".join(kernel.combined_probes)
    name = analysis_name(kernel)
    run = kernel.trace.run_info
    if name or run is None or not run.probe:
        return name or UNKNOWN_PROBE.name
    return line_range_probe(kernel) or PurePath(run.probe).stem


def line_range_probe(kernel: KernelFacts) -> str:
    """Return the name of a run's only probe if it measures source lines, else ""."""
    run = kernel.trace.run_info
    name = run.probe if run is not None and run.probe else ""
    return name if line_range_of(name) and not kernel.combined_probes else ""


def analyse_results(trace: Run, kernel: KernelFacts, *, max_results: int | None = None) -> Iterator[AnalysedResult]:
    """Yield the analysed results of a kernel, the oldest first, at most ``max_results`` of them."""
    return (analyse_result(trace, kernel, row) for row in kernel.result_rows[:max_results])


def analyse_result(trace: Run, kernel: KernelFacts, row: int) -> AnalysedResult:
    """Analyse the result in a row of the result table; it must be a result of this kernel."""
    probed_kernel = kernel.kernel_of_result(row)
    number, file, probe = trace.results.launch(row), trace.results.name(row), known_probe(probed_kernel)
    launch = None if number is None else trace.launches[number]
    result, analysis, problem = None, None, None
    metric_values: tuple[MetricValue, ...] = ()
    try:
        result = probe_results.read_result_row(trace, probed_kernel, row)
        launch_analysis = probe.analyse(result)
        metric_values, analysis = probe.metric_values_of(launch_analysis), launch_analysis
    except TraceError as error:
        problem = str(error)
    if result is None:
        return AnalysedResult(probed_kernel, probe, file, launch, analysis, problem)
    header, sample = result.result.header, result.result.sample
    return AnalysedResult(probed_kernel, probe, file, launch, analysis, problem, header.blocks, sample, metric_values)


def metric_text(metric_value: MetricValue) -> str:
    """Format a value: ``40 000 B``, ``3.25``, ``–``; ``0x0150`` for an offset in SASS."""
    if metric_value.value is None:
        return NOT_MEASURED
    if isinstance(metric_value.value, Offset):
        return f"{metric_value.value:#06x}"
    is_integer = isinstance(metric_value.value, int)
    number = units.count(int(metric_value.value)) if is_integer else units.decimal(metric_value.value)
    return f"{number} {metric_value.unit}".rstrip()


def probe_option_for(quantity: Quantity) -> str:
    """Return ``-p NAME`` of the probe that measures a quantity."""
    return f"-p {probe_names_where(lambda probe: any(metric.quantity == quantity for metric in probe.metrics))[0]}"


def probe_measuring_all(quantities: Iterable[Quantity]) -> str | None:
    """Return the probe that measures all of some quantities in one launch; None if there is none."""
    wanted_quantities = set(quantities)
    names = probe_names_where(lambda probe: wanted_quantities <= {metric.quantity for metric in probe.metrics})
    return names[0] if names else None


def mean_quantities(results: Iterable[AnalysedResult]) -> dict[str, float]:
    """Return the mean of each quantity over results; a quantity that is unknown in some result is left out."""
    values: dict[str, list[float | None]] = {}
    for result in results:
        for metric_value in result.metric_values:
            if metric_value.metric.quantity:
                values.setdefault(metric_value.metric.quantity, []).append(metric_value.value)
    means = {}
    for quantity, by_result in values.items():
        known_values = [value for value in by_result if value is not None]
        if len(known_values) == len(by_result):
            means[quantity] = sum(known_values) / len(known_values)
    return means


def result_extent(result: AnalysedResult) -> BlockExtent:
    """Return the number of blocks that a result covers, and of its grid; None for all blocks, and for an unreadable
    result.
    """
    if result.sample is None or result.blocks is None:
        return None
    return len(result.sample.blocks), result.blocks


def results_by_extent(results: Iterable[AnalysedResult]) -> dict[BlockExtent, list[AnalysedResult]]:
    """Group results that may be combined: whole launches first, then samples, the most blocks first.

    A budget may let a few launches be recorded whole, and others for a sample of their blocks. A mean over both would
    have no meaning: a sum over some blocks is not a smaller sum over all.
    """
    groups: dict[BlockExtent, list[AnalysedResult]] = {}
    for result in results:
        groups.setdefault(result_extent(result), []).append(result)
    whole_launches = {None: groups.pop(None)} if None in groups else {}
    return whole_launches | {extent: groups[extent] for extent in sorted(filter(None, groups), reverse=True)}


def comparable_results(results: Iterable[AnalysedResult]) -> tuple[BlockExtent, list[AnalysedResult]]:
    """Select the results of one number: whole launches if there are any, else the samples of most blocks."""
    analysed = [result for result in results if result.analysis is not None]
    return next(iter(results_by_extent(analysed).items()), (None, []))


def extent_text(extent: BlockExtent) -> str:
    """Format an extent: ``64 of 1 024 blocks``, "" for all."""
    return "" if extent is None else f"{units.count(extent[0])} of {units.counted(extent[1], 'block')}"

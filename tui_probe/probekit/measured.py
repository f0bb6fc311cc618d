"""Analysed results: the metrics of one launch, means of quantities, and results of equal extent.

A probe that is not known here is read map by map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.table import safe
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
    import os
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.probekit.metric import MetricValue, Quantity
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.map_records import Sample
    from tui_probe.trace.model import KernelFacts, ProbedKernel, Run

_MAX_CHECKED: Final = 1000
"""Newest results of a kernel that are checked for faults."""
_MAX_CHECKED_BYTES: Final = 256 << 20
"""Bytes of all results of a kernel that are checked."""
_MAX_RESULT_BYTES: Final = 32 << 20
"""Bytes of a result that is checked; of a larger one it is not known whether it has a fault."""
_MAX_REMEMBERED: Final = 10_000
"""Results whose faults are remembered, of all kernels."""
_faults: dict[tuple[str, int, bool], bool] = {}
"""True for a result with a fault, by its path, its time, and the state of the context (True: it had failed)."""
BlockExtent = tuple[int, int] | None
"""Blocks that were measured, and those of the grid; None for all of any grid."""


def _map_by_map(of: ProbeResult) -> custom_probe.CustomCounts:
    """Raise TraceError where the probe matched nothing: its records then hold what its registers began with."""
    if of.kernel.matched_nothing:
        raise TraceError(of.kernel.reason or NOT_MEASURED)
    if advice := unnamed_probe_advice(of.kernel):
        raise TraceError(advice)
    return custom_probe.analyse_custom(of.result, custom_maps(of.kernel.trace.directory, of.kernel.probe))


UNKNOWN_PROBE: Final = Probe(
    name="own probe", analyse=_map_by_map, metric_values=custom_probe.CustomCounts.metric_values
)
"""Stands for a probe that is not known here."""


def first_value(of: ProbeResult) -> str:
    """Return the first field of the first map of a probe without an analysis; "" if it is unknown."""
    try:
        return _map_by_map(of).first_value
    except TraceError:
        return ""


@dataclass(frozen=True, slots=True)
class AnalysedResult:
    """One result file and its analysis, or the ``problem`` for which there is none. ``launch`` is None if the log is
    silent.

    Where only a ``sample`` of the blocks was measured the values are of these only. ``blocks`` are those of the grid,
    None if the file cannot be read.
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
        """The blocks that the values are of."""
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
        """Measured values in one line, or the reason why there are none."""
        if self.analysis is None:
            return safe(self.problem or NOT_MEASURED)
        shown = (
            f"{metric_value.label} {metric_text(metric_value)}"
            for metric_value in self.metric_values
            if metric_value.shown
        )
        try:
            text = ", ".join(shown) if self.probe.line is None else self.probe.line(self.analysis)
        except TraceError as error:
            return safe(str(error))
        sample = f"  ({sampled_blocks_text(self.sample)})" if self.sample else ""
        missing = f"  (excluding {units.counted(self.threads_missing or 0, 'thread')} that did not exit)"
        simulated = "  simulated" if self.kernel.trace.state.simulated else ""
        return f"{text}{sample}{missing if self.threads_missing else ''}{simulated}"


def known_probe(kernel: KernelFacts) -> Probe:
    """The probe of a kernel, or ``UNKNOWN_PROBE``."""
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


@dataclass(frozen=True)
class JoinedResult:
    """Results of probes that measure parts of one thing, with one analysis; of another probe its one result."""

    probe: Probe
    results: tuple[ProbeResult, ...]

    @cached_property
    def analysis(self) -> Any:
        """Analysis of the result, joined for a group of probes. Raises TraceError."""
        analyses = [known_probe(result.kernel).analyse(result) for result in self.results]
        return analyses[0] if self.probe.groups is None else self.probe.groups.join(analyses)

    @property
    def name(self) -> str:
        """Name of the probe; of joined ones that of the first, whether it has a result or not."""
        return self.results[0].probe if self.probe.groups is None else self.probe.groups.probes[0]

    @property
    def newest(self) -> Launch | None:
        """The newest launch; None where the log does not name one."""
        launches = [result.launch for result in self.results if result.launch is not None]
        return max(launches, key=lambda launch: launch.row, default=None)

    @property
    def which(self) -> str:
        """``launches 76, 79 of #1``."""
        launches = [result.launch for result in self.results if result.launch is not None]
        numbers = sorted(launch.number for launch in launches if launch.number is not None)
        if len(self.results) == 1 or len(numbers) < len(self.results):
            return ", ".join(result.which for result in self.results)
        return f"launches {', '.join(map(str, numbers))} of #{self.results[0].kernel.index}"


def joined_sources(source: ViewSource) -> list[ViewSource]:
    """Return the kernel under each probe with results whose analysis is joined with that of ``source``.

    Without results it is under the first of these probes; a probe without groups is ``source`` itself.
    """
    groups = known_probe(source.kernel).groups
    if groups is None:
        return [source]
    by_name = {analysis_name(part.kernel): part for part in reversed(source.of_all_probes())}
    parts = [by_name[name] for name in groups.probes if name in by_name]
    return [part for part in parts if part.kernel.result_rows and not part.kernel.matched_nothing] or parts[:1]


def unjoined_sources(source: ViewSource) -> Iterator[ViewSource]:
    """Yield the kernel under each probe of the run; of probes whose analyses are joined only under the first."""
    for of_probe in source.by_probe():
        if joined_sources(of_probe)[0].kernel.probe == of_probe.kernel.probe:
            yield of_probe


def joined_name(kernel: KernelFacts) -> str:
    """Return the name of the probe; of probes whose analyses are joined that of the first, with a result or without."""
    groups = known_probe(kernel).groups
    return groups.probes[0] if groups is not None else analysis_name(kernel) or ""


@dataclass(frozen=True, slots=True)
class ShownResult:
    """The ``row`` of the result that is shown, None without any; ``unchecked`` others were not checked for faults."""

    row: int | None
    unchecked: int = 0


def find_shown_result(source: ViewSource, *, reads: bool = True) -> ShownResult:
    """Find the result of the launch; without a launch the newest one, or the newest with a fault if the probe looks for
    faults in each launch.

    Reads a limited number of results, each once; none without ``reads``: then only faults that were found before count.
    """
    if source.launch is not None:
        return ShownResult(source.launch.result)
    newest = source.kernel.find_newest_result()
    probed = None if newest is None else source.kernel.of_result(newest)
    probe = None if probed is None else probe_named(analysis_name(probed))
    if probed is None or probe is None or not probe.fault_in_any_launch or probed.matched_nothing:
        return ShownResult(newest)
    rows, unchecked, checked = probed.result_rows, 0, 0
    for row, state in newest_results(source.trace, rows):
        checked += 1
        has_fault = None
        if state is not None and state.st_size <= _MAX_RESULT_BYTES:
            has_fault = _has_fault(probe, probed, row, state.st_mtime_ns, reads=reads)
        if has_fault:
            return ShownResult(row)
        unchecked += has_fault is None and row != newest
    return ShownResult(newest, unchecked + len(rows) - checked)


def newest_results(trace: Run, rows: Sequence[int]) -> Iterator[tuple[int, os.stat_result | None]]:
    """Yield the newest of ``rows`` first, with the state of the file: as many as are checked for faults."""
    bytes_left = _MAX_CHECKED_BYTES
    for row in islice(reversed(rows), _MAX_CHECKED):
        state = _file_state(trace.results.path(row))
        bytes_left -= 0 if state is None else state.st_size
        if bytes_left < 0:
            return
        yield row, state


def _file_state(path: Path | None) -> os.stat_result | None:
    try:
        return None if path is None else path.stat()
    except OSError:
        return None


def _has_fault(probe: Probe, kernel: ProbedKernel, row: int, written: int, *, reads: bool) -> bool | None:
    """Return whether a finding of the result ``written`` then is a fault; None if it was not read, or cannot be."""
    trace = kernel.trace
    # What ended the context makes an access of the last launch a fault.
    key = (str(trace.results.path(row)), written, trace.state.context_failed is not None)
    if key not in _faults and reads and probe.findings is not None:
        try:
            result = probe_results.read_result_row(trace, kernel, row)
            findings = probe.findings(result, probe.analyse(result))
            _faults[key] = any(finding.wrong_result for finding in findings)
        except TraceError:
            return None
        for old in list(_faults)[:-_MAX_REMEMBERED]:
            _faults.pop(old, None)
    return _faults.get(key)


def read_joined(parts: Sequence[ViewSource]) -> JoinedResult:
    """Return the results of ``joined_sources`` to show, or those of their launches. Raises TraceError naming a file."""
    return read_joined_rows([(part, find_shown_result(part).row) for part in parts])


def read_joined_rows(parts: Iterable[tuple[ViewSource, int | None]]) -> JoinedResult:
    """Return the results of ``joined_sources`` in these rows, None for a result to find. Raises TraceError."""
    results = tuple(_read_row(source, row) for source, row in parts)
    return JoinedResult(known_probe(results[0].kernel), results)


def _read_row(source: ViewSource, row: int | None) -> ProbeResult:
    if row is None:
        return probe_results.read_result(source)
    return probe_results.read_result_row(source.trace, source.kernel, row)


def analyse_results(trace: Run, kernel: KernelFacts, *, most: int | None = None) -> Iterator[AnalysedResult]:
    """The results of a kernel, analysed, the oldest first, at most ``most`` of them."""
    return (analyse_result(trace, kernel, row) for row in kernel.result_rows[:most])


def analyse_result(trace: Run, kernel: KernelFacts, row: int) -> AnalysedResult:
    """The result in a row of the result table, which is one of this kernel's, analysed."""
    probed = kernel.of_result(row)
    number, file, probe = trace.results.launch(row), trace.results.name(row), known_probe(probed)
    launch = None if number is None else trace.launches[number]
    result, analysis, problem = None, None, None
    metric_values: tuple[MetricValue, ...] = ()
    try:
        result = probe_results.read_result_row(trace, probed, row)
        analysed = probe.analyse(result)
        metric_values, analysis = probe.figures_in(analysed), analysed
    except TraceError as error:
        problem = str(error)
    if result is None:
        return AnalysedResult(probed, probe, file, launch, analysis, problem)
    header, sample = result.result.header, result.result.sample
    return AnalysedResult(probed, probe, file, launch, analysis, problem, header.blocks, sample, metric_values)


def metric_text(metric_value: MetricValue) -> str:
    """``40 000 B``, ``3.25``, or ``–``; of a place in machine code its offset: ``0x0150``."""
    if metric_value.value is None:
        return NOT_MEASURED
    if isinstance(metric_value.value, Offset):
        return f"{metric_value.value:#06x}"
    is_integer = isinstance(metric_value.value, int)
    number = units.count(int(metric_value.value)) if is_integer else units.decimal(metric_value.value)
    return f"{number} {metric_value.unit}".rstrip()


def probe_option_for(quantity: Quantity) -> str:
    """``-p NAME``: the probe to run for a quantity."""
    return f"-p {probe_names_where(lambda probe: any(metric.quantity == quantity for metric in probe.metrics))[0]}"


def probe_measuring_all(quantities: Iterable[Quantity]) -> str | None:
    """The probe that measures all of some quantities in one launch; None if there is none."""
    wanted = set(quantities)
    names = probe_names_where(lambda probe: wanted <= {metric.quantity for metric in probe.metrics})
    return names[0] if names else None


def mean_quantities(results: Iterable[AnalysedResult]) -> dict[str, float]:
    """The mean of each quantity over results; one that is not known of some result is left out."""
    values: dict[str, list[float | None]] = {}
    for result in results:
        for metric_value in result.metric_values:
            if metric_value.metric.quantity:
                values.setdefault(metric_value.metric.quantity, []).append(metric_value.value)
    means = {}
    for quantity, by_result in values.items():
        known = [value for value in by_result if value is not None]
        if len(known) == len(by_result):
            means[quantity] = sum(known) / len(known)
    return means


def result_extent(result: AnalysedResult) -> BlockExtent:
    """Return how many blocks of its launch a result covers, and of how many; None for all. One that cannot be read
    counts as whole.
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
    """``64 of 1 024 blocks``, "" for all."""
    return "" if extent is None else f"{units.count(extent[0])} of {units.counted(extent[1], 'block')}"

"""Values of a kernel or launch that a comparison uses: shape, resources, times, metrics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.measured import analyse_result, comparable_results, extent_text, known_probe
from tui_probe.probekit.shown_results import newest_results
from tui_probe.trace.gpu_time import weighted_quantile, weighted_times
from tui_probe.trace.launch_shape import WARP_SIZE
from tui_probe.verdicts.kernel_matching import result_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.measured import AnalysedResult, BlockExtent
    from tui_probe.probekit.metric import Better, Metric
    from tui_probe.probekit.metric import MetricValue as Measurement
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe import Probe
    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.model import KernelFacts
    from tui_probe.verdicts.kernel_matching import LaunchShape


_MAX_WARPS: Final = {
    "7.0": 64, "7.2": 64, "7.5": 32, "8.0": 64, "8.6": 48, "8.7": 48, "8.9": 48, "9.0": 64, "10.0": 64, "10.3": 64,
    "11.0": 48, "12.0": 48, "12.1": 48,
}  # fmt: skip
"""Maximum number of resident warps per SM by compute capability: CUDA C++ Programming Guide, "Technical Specifications
per Compute Capability".
"""
MAX_RESULTS: Final = 20
"""Results of a kernel whose median is taken, the newest ones."""
MIN_FOR_QUARTILES: Final = 4
"""Launches from which on their quartiles tell how much they vary."""
_PAGES_BY_VALUE: Final = {
    **dict.fromkeys(("launches", "blocks", "threads"), ("launches",)),
    **dict.fromkeys(("registers", "spills"), ("sass", "diff")),
    **dict.fromkeys(("registers_probed", "spills_probed"), ("diff", "sass")),
    **dict.fromkeys(("shared", "blocks_per_sm", "occupancy", "probe_bytes"), ("summary",)),
    **dict.fromkeys(("time_ms", "time_probed_ms", "slowdown"), ("launches", "summary")),
}
"""Page with the values that every kernel has; those of probes name their own."""
_INTEGER_FROM: Final = 100
"""Value from which on a number is shown without its fraction."""


def warps_per_block(block: Dim3) -> int:
    """Warps of a block of this size in threads; a warp that is not full counts."""
    threads = block[0] * block[1] * block[2]
    return -(-threads // WARP_SIZE)


def occupancy(blocks_per_sm: int | None, block: Dim3 | None, capability: str | None) -> float | None:
    """Resident warps of a kernel over the most an SM of this compute capability holds, in 0…1; None if unknown."""
    max_warps = _MAX_WARPS.get(capability or "")
    if blocks_per_sm is None or block is None or max_warps is None:
        return None
    return min(1.0, blocks_per_sm * warps_per_block(block) / max_warps)


def metric_pages(probe: Probe, metric: Metric) -> tuple[str, ...]:
    """The pages that show it, the best one first: the one that it names; of time the drawings, of counts the lines.

    In the end the launches; each has its numbers there.
    """
    named_pages = [metric.page] if metric.page else []
    lines = ["lines"] if probe.lines is not None else []
    drawings = [kind.name for kind in probe.views]
    drawings += ["timeline"] if probe.timeline is not None else []
    drawings += ["latency"] if probe.waits is not None else []
    value_pages = [*drawings, *lines] if metric.is_time else [*lines, *drawings]
    return tuple(dict.fromkeys([*named_pages, *value_pages, "launches"]))


@dataclass(frozen=True, slots=True)
class KernelValue:
    """One number; ``value`` is None where it was not measured. ``format_value`` writes a value with its unit."""

    key: str
    label: str
    value: float | None
    format_value: Callable[[float], str]
    better: Better = "lower"
    of_probe: bool = False
    """True if it is the cost of the probe, and says nothing of the program."""
    is_time: bool = False
    """True if it is a duration, or made of some."""
    is_leading: bool = False
    """True if a kernel is judged by it where it was measured."""
    launches: int = 1
    """Number of launches; the value is their median, a number of faults their sum."""
    low: float | None = None
    """The quartiles of those, where there are enough for it; between them half of the launches lie."""
    high: float | None = None
    pages: tuple[str, ...] = ()
    """The pages of a kernel that show it, the best one first."""
    of_work: bool = False
    """True if it grows with the amount of work, so that neither more nor less is better by itself."""
    ideal: float | None = None
    """The value without any loss; None if it is not known."""

    @property
    def spread(self) -> float | None:
        """Half the distance of the quartiles, as a share of the value."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    @property
    def excess(self) -> float | None:
        """The value in parts of its ideal; None without an ideal, and where that is 0."""
        return self.value / self.ideal if self.value is not None and self.ideal else None

    @property
    def ideal_text(self) -> str:
        """The ideal as it is shown; "" if it is not known."""
        return "" if self.ideal is None else self.format_value(self.ideal)

    @property
    def text(self) -> str:
        """The value as it is shown."""
        return units.NOT_MEASURED if self.value is None else self.format_value(self.value)


def launch_values(source: ViewSource) -> list[KernelValue]:
    """Return the launches, resources and times of a kernel; times of a simulated GPU are left out."""
    values = (*_shape_values(source), *_resource_values(source), *_time_values(source))
    return [replace(kernel_value, pages=_PAGES_BY_VALUE[kernel_value.key]) for kernel_value in values]


def median_over_launches(kernel_value: KernelValue, values: Sequence[float]) -> KernelValue:
    """A value with the median of several launches, and their quartiles from four launches on."""
    if len(values) < MIN_FOR_QUARTILES:
        return replace(kernel_value, value=median(values), launches=len(values))
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return replace(kernel_value, value=middle, launches=len(values), low=low, high=high)


def _count_text(value: float) -> str:
    return units.count(round(value))


def _milliseconds_text(value: float) -> str:
    return units.duration(value / 1e3)


def _product(dim: Dim3 | None) -> int | None:
    return None if dim is None else dim[0] * dim[1] * dim[2]


def _shape_values(source: ViewSource) -> Iterator[KernelValue]:
    launch = source.launch or source.kernel
    if source.launch is None:
        yield KernelValue("launches", "launches", source.kernel.launches, _count_text, "neither")
    yield KernelValue("blocks", "blocks", _product(launch.grid), _count_text, "neither")
    yield KernelValue("threads", "threads per block", _product(launch.block), _count_text, "neither")


def _resource_values(source: ViewSource) -> Iterator[KernelValue]:
    kernel = source.kernel
    device = source.trace.state.device
    occupancy_share = occupancy(kernel.blocks_per_sm, kernel.block, device.capability if device else None)
    yield KernelValue("registers", "registers per thread", kernel.registers_pruned, _count_text)
    yield KernelValue("registers_probed", "registers, probed", kernel.registers_probed, _count_text, of_probe=True)
    yield KernelValue("spills", "spilled bytes", kernel.spills_pruned, _count_text)
    yield KernelValue("spills_probed", "spilled bytes, probed", kernel.spills_probed, _count_text, of_probe=True)
    yield KernelValue("shared", "shared memory", kernel.shared, units.size, "neither")
    yield KernelValue(
        "blocks_per_sm", "blocks per SM", kernel.blocks_per_sm, _count_text, "neither"
    )  # occupancy judges
    yield KernelValue("occupancy", "occupancy", occupancy_share, lambda share: f"{share:.0%}", "higher")
    yield KernelValue("probe_bytes", "probe memory", kernel.probe_bytes, units.size, "neither", of_probe=True)


def _time_values(source: ViewSource) -> Iterator[KernelValue]:
    kernel = source.kernel
    time = KernelValue("time_ms", "time", kernel.time_ms, _milliseconds_text, is_leading=True)
    originals = [] if source.trace.state.simulated else list(kernel.times.originals_ms)
    yield median_over_launches(time, originals) if originals else _sampled_time(time, kernel)
    yield KernelValue("time_probed_ms", "time, probed", kernel.time_probed_ms, _milliseconds_text, of_probe=True)
    yield KernelValue(
        "slowdown", "slowdown by the probe", kernel.slowdown, lambda ratio: f"{ratio:.2f}×", of_probe=True
    )


def _sampled_time(time: KernelValue, kernel: KernelFacts) -> KernelValue:
    """Return the time with the number and the quartiles of the launches that were timed without the probe."""
    of_launches = kernel.gpu_time.original if kernel.gpu_time else None
    if of_launches is None or of_launches.samples < MIN_FOR_QUARTILES:
        return replace(time, launches=of_launches.samples if of_launches else 1)
    times, weight = weighted_times(kernel.samples, probed=False)
    low, high = (weighted_quantile(times, weight, part) / 1e6 for part in (0.25, 0.75))
    return replace(time, launches=of_launches.samples, low=low, high=high)


def probe_values(
    source: ViewSource, progress: Progress, problems: dict[str, None], shape: LaunchShape | None = None
) -> Iterator[KernelValue]:
    """Return the values of a launch by its probe, or the median over the newest results, of one shape if given.

    A number of faults is the sum over all results: a median would hide a fault of one launch.
    None of probes that measure waits: each launch may measure other instructions (``wait_changes``).
    Of the cycles of a simulated GPU neither more nor less is better. Why a result has no values goes to ``problems``,
    each once.
    """
    values: dict[str, KernelValue] = {}
    sources = [candidate for candidate in source.by_probe() if known_probe(candidate.kernel).measured_waits is None]
    for place, probe_source in enumerate(sources):
        for kernel_value in _values_of_probe(
            probe_source, _part_of_progress(progress, place, len(sources)), problems, shape
        ):
            # Of several probes that count the same, the first.
            values.setdefault(f"{kernel_value.key} {kernel_value.label}", kernel_value)
    yield from values.values()


def _part_of_progress(progress: Progress, place: int, count: int) -> Progress:
    return lambda share: progress((place + share) / count)


def _values_of_probe(
    source: ViewSource, progress: Progress, problems: dict[str, None], shape: LaunchShape | None
) -> Iterator[KernelValue]:
    sums_faults = known_probe(source.kernel).fault_in_any_launch
    rows, left_out = _rows_to_read(source, shape, all_rows=sums_faults)
    if left_out:
        problems[f"{units.counted(left_out, 'older result')} are not part of the sums"] = None
    values_by_key: dict[str, tuple[KernelValue, list[float], list[float]]] = {}
    results = []
    for place, row in enumerate(rows):
        progress(place / len(rows))
        results.append(analyse_result(source.trace, source.kernel, row))
    problems |= dict.fromkeys(result.problem for result in results if result.problem is not None)
    extent, comparable = comparable_results(results)
    if problem := _excluded_text(len(comparable), sum(result.analysis is not None for result in results), extent):
        problems[problem] = None
    summed = {
        value.key for result in comparable for value in result.metric_values if value.metric.over_launches == "sum"
    }
    for result in comparable:
        for kernel_value in _values_of_result(source, result):
            if kernel_value.value is not None:
                _, values, ideals = values_by_key.setdefault(kernel_value.key, (kernel_value, [], []))
                values.append(kernel_value.value)
                ideals += [] if kernel_value.ideal is None else [kernel_value.ideal]
    for kernel_value, values, ideals in values_by_key.values():
        ideal = median(ideals) if len(ideals) == len(values) else None
        of_launches = replace(kernel_value, ideal=ideal)
        if sums_faults and kernel_value.key in summed:
            yield replace(of_launches, value=sum(values), launches=len(values))
        else:
            yield median_over_launches(of_launches, values)


def _rows_to_read(source: ViewSource, shape: LaunchShape | None, *, all_rows: bool) -> tuple[list[int], int]:
    """Return the results whose values make one, the newest first, and the number of older ones that are too many."""
    if source.launch is not None:
        row = source.launch.result  # that of another probe, if this one left none
        return [row] if row is not None and row in source.kernel.result_rows else [], 0
    rows = [row for row in source.kernel.result_rows if shape in (None, result_shape(source.trace, row))]
    if not all_rows:
        return rows[: -MAX_RESULTS - 1 : -1], 0
    newest_rows = [row for row, _ in newest_results(source.trace, rows)]
    return newest_rows, len(rows) - len(newest_rows)


def _excluded_text(used: int, analysed: int, extent: BlockExtent) -> str:
    """Return the note where not all results may be taken together."""
    if used == analysed:
        return ""
    subject = f"the results of {extent_text(extent)}" if extent else "the results of all blocks"
    return f"results of different block samples are not combined: only {subject} are used ({used} of {analysed})"


def _values_of_result(source: ViewSource, result: AnalysedResult) -> Iterator[KernelValue]:
    if result.sample is not None:
        yield KernelValue(
            "blocks_measured", "blocks measured", result.blocks_measured, _count_text, "neither", pages=("launches",)
        )
    for metric_value in result.metric_values:
        nothing = not metric_value.is_shown and not metric_value.value  # a count of what seldom occurs
        if not metric_value.metric.place and not nothing:
            pages = metric_pages(result.probe, metric_value.metric)
            yield replace(_value_of_metric(metric_value, simulated=source.trace.state.simulated), pages=pages)


def _value_of_metric(measurement: Measurement, *, simulated: bool) -> KernelValue:
    metric = measurement.metric
    label = metric.standalone_title or metric.key.replace("_", " ")
    unit = "" if metric.unit in label.split() else metric.unit  # not “span cycles 350 cycles”

    def show(number: float) -> str:
        as_integer = float(number).is_integer() or abs(number) >= _INTEGER_FROM
        return f"{units.count(round(number)) if as_integer else f'{number:.2f}'} {unit}".rstrip()

    better: Better = "neither" if simulated and metric.is_time else metric.better
    leads = metric.quantity == "launch cycles"
    return KernelValue(
        metric.key, label, measurement.value, show, better, is_time=metric.is_time, is_leading=leads,
        of_work=metric.of_work, ideal=measurement.ideal,
    )  # fmt: skip

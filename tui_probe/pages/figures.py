"""The figures of a kernel or of one of its launches that can be set against those of another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.occupancy import occupancy
from tui_probe.draw import units
from tui_probe.pages.matching import launched
from tui_probe.probekit.alike import alike, extent_words
from tui_probe.probekit.measured import measured
from tui_probe.probekit.metric_pages import pages_of_metric
from tui_probe.probekit.probe_results import of_each_probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.pages.matching import Launched
    from tui_probe.probekit.alike import Extent
    from tui_probe.probekit.kind import Source
    from tui_probe.probekit.measured import Measured
    from tui_probe.probekit.metric import Better
    from tui_probe.probekit.metric import Figure as Measurement
    from tui_probe.trace.shapes import Dim3

MOST_RESULTS: Final = 20
"""Results of a kernel whose median is taken, the newest ones."""
_FEWEST: Final = 4
"""Launches from which on their quartiles tell how much they vary."""
_PAGES: Final = {
    **dict.fromkeys(("launches", "blocks", "threads"), ("launches",)),
    **dict.fromkeys(("registers", "spills"), ("sass", "diff")),
    **dict.fromkeys(("registers_probed", "spills_probed"), ("diff", "sass")),
    **dict.fromkeys(("shared", "blocks_per_sm", "occupancy", "probe_bytes"), ("summary",)),
    **dict.fromkeys(("time_ms", "time_probed_ms", "slowdown"), ("launches", "summary")),
}
"""Where the figures that every kernel has are shown; those of probes say it themselves."""
_WHOLE: Final = 100
"""From which on a number is shown without its fraction."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number; ``value`` is None where it was not measured. ``show`` writes a value with its unit."""

    key: str
    label: str
    value: float | None
    show: Callable[[float], str]
    better: Better = "lower"
    of_probe: bool = False
    """Whether it tells what the probe costs, and nothing of the program."""
    is_time: bool = False
    """Whether it is a duration, or made of some."""
    leads: bool = False
    """Whether a kernel is judged by it where it was measured."""
    launches: int = 1
    """Of how many launches the value is the median."""
    low: float | None = None
    """The quartiles of those, where there are enough for it; between them half of the launches lie."""
    high: float | None = None
    pages: tuple[str, ...] = ()
    """The pages of a kernel that show it, the best one first."""

    @property
    def spread(self) -> float | None:
        """Half the distance of the quartiles, as a share of the value."""
        if self.low is None or self.high is None or not self.value:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    @property
    def text(self) -> str:
        """The value as it is shown."""
        return units.NOT_MEASURED if self.value is None else self.show(self.value)


def launch_figures(source: Source) -> list[Figure]:
    """What the launches were, what the kernel needs, how long it took; times of a simulated GPU are left out."""
    found = (*_shape(source), *_resources(source), *_times(source))
    return [replace(figure, pages=_PAGES[figure.key]) for figure in found]


def over_launches(figure: Figure, values: Sequence[float]) -> Figure:
    """A figure with the median of several launches, and their quartiles from four launches on."""
    if len(values) < _FEWEST:
        return replace(figure, value=median(values), launches=len(values))
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return replace(figure, value=middle, launches=len(values), low=low, high=high)


def _count(value: float) -> str:
    return units.count(round(value))


def _milliseconds(value: float) -> str:
    return units.duration(value / 1e3)


def _product(dim: Dim3 | None) -> int | None:
    return None if dim is None else dim[0] * dim[1] * dim[2]


def _shape(source: Source) -> Iterator[Figure]:
    at = source.launch or source.kernel
    if source.launch is None:
        yield Figure("launches", "launches", source.kernel.launches, _count, "neither")
    yield Figure("blocks", "blocks", _product(at.grid), _count, "neither")
    yield Figure("threads", "threads per block", _product(at.block), _count, "neither")


def _resources(source: Source) -> Iterator[Figure]:
    kernel = source.kernel
    device = source.trace.state.device
    filled = occupancy(kernel.blocks_per_sm, kernel.block, device.capability if device else None)
    yield Figure("registers", "registers per thread", kernel.registers_pruned, _count)
    yield Figure("registers_probed", "registers, probed", kernel.registers_probed, _count, of_probe=True)
    yield Figure("spills", "spilled bytes", kernel.spills_pruned, _count)
    yield Figure("spills_probed", "spilled bytes, probed", kernel.spills_probed, _count, of_probe=True)
    yield Figure("shared", "shared memory", kernel.shared, units.size, "neither")
    yield Figure("blocks_per_sm", "blocks per SM", kernel.blocks_per_sm, _count, "neither")  # occupancy judges
    yield Figure("occupancy", "occupancy", filled, lambda share: f"{share:.0%}", "higher")
    yield Figure("probe_bytes", "probe memory", kernel.probe_bytes, units.size, "neither", of_probe=True)


def _times(source: Source) -> Iterator[Figure]:
    kernel = source.kernel
    time = Figure("time_ms", "time", kernel.time_ms, _milliseconds, leads=True)
    originals = [] if source.trace.state.simulated else list(kernel.times.originals_ms)
    yield over_launches(time, originals) if originals else time
    yield Figure("time_probed_ms", "time, probed", kernel.time_probed_ms, _milliseconds, of_probe=True)
    yield Figure("slowdown", "slowdown by the probe", kernel.slowdown, lambda ratio: f"{ratio:.2f}×", of_probe=True)


def figures_seen(
    source: Source, progress: Progress, problems: dict[str, None], shape: Launched | None = None
) -> Iterator[Figure]:
    """What the probe's analysis says of a launch, or the median over the newest results, of one shape if given.

    Of the cycles of a simulated GPU neither more nor less is better. Why a result has no figures goes to ``problems``,
    each once.
    """
    found: dict[str, Figure] = {}
    sources = of_each_probe(source)
    for place, one in enumerate(sources):
        for figure in _seen_by_probe(one, _part(progress, place, len(sources)), problems, shape):
            found.setdefault(figure.key, figure)  # of several probes that count it the first
    yield from found.values()


def _part(progress: Progress, place: int, count: int) -> Progress:
    return lambda share: progress((place + share) / count)


def _seen_by_probe(
    source: Source, progress: Progress, problems: dict[str, None], shape: Launched | None
) -> Iterator[Figure]:
    if source.launch is not None:
        rows = [] if source.launch.result is None else [source.launch.result]
    else:
        of_shape = (row for row in reversed(source.kernel.result_rows) if shape in (None, launched(source.trace, row)))
        rows = list(islice(of_shape, MOST_RESULTS))
    seen: dict[str, tuple[Figure, list[float]]] = {}
    results = []
    for place, row in enumerate(rows):
        progress(place / len(rows))
        results.append(measured(source.trace, source.kernel, row))
    problems |= dict.fromkeys(result.problem for result in results if result.problem is not None)
    extent, taken = alike(results)
    if words := _left_out(len(taken), sum(result.analysis is not None for result in results), extent):
        problems[words] = None
    for result in taken:
        for figure in _of_result(source, result):
            if figure.value is not None:
                seen.setdefault(figure.key, (figure, []))[1].append(figure.value)
    for figure, values in seen.values():
        yield over_launches(figure, values)


def _left_out(taken: int, known: int, extent: Extent) -> str:
    """What is said where not all results may be taken together."""
    if taken == known:
        return ""
    which = f"those of {extent_words(extent)} alone" if extent else "those of all blocks alone"
    return f"results of samples of blocks and of others are not taken together: {which}, {taken} of {known}"


def _of_result(source: Source, result: Measured) -> Iterator[Figure]:
    if result.sample is not None:
        yield Figure(
            "blocks_measured", "blocks measured", result.blocks_measured, _count, "neither", pages=("launches",)
        )
    for each in result.figures:
        nothing = not each.shown and not each.value  # a count of what seldom occurs
        if not each.metric.place and not nothing:
            pages = pages_of_metric(result.probe, each.metric)
            yield replace(_measured(each, simulated=source.trace.state.simulated), pages=pages)


def _measured(figure: Measurement, *, simulated: bool) -> Figure:
    metric = figure.metric
    label = metric.alone or metric.key.replace("_", " ")
    unit = "" if metric.unit in label.split() else metric.unit  # not “span cycles 350 cycles”

    def show(number: float) -> str:
        whole = float(number).is_integer() or abs(number) >= _WHOLE
        return f"{units.count(round(number)) if whole else f'{number:.2f}'} {unit}".rstrip()

    better: Better = "neither" if simulated and metric.is_time else metric.better
    leads = metric.quantity == "launch cycles"
    return Figure(metric.key, label, figure.value, show, better, is_time=metric.is_time, leads=leads)

"""Page ``latency``: what the probe adds to a launch, and what warps wait for.

Outside the kernel, from a benchmark: the *prologue* (the records are cleared), the *kernel* (with the probe in it) and
the *epilogue* (the records are copied back), next to the original. Inside, from the probe's own results: cycles at
barriers per warp, or the time of blocks and the gaps between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import pad, wrap
from tui_probe.draw.view import Document
from tui_probe.probekit import probe_results
from tui_probe.probekit.measured import known_probe
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.probekit.probe_view import no_result_reason
from tui_probe.probekit.registry import probe_names_where
from tui_probe.probekit.result_tables import PAIR_RATIO_LABEL, distribution_row, distribution_titles, unmeasured_row
from tui_probe.records.distribution import distribution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.records.distribution import Waits
    from tui_probe.trace.model import KernelFacts

_BAR_SIGNS: Final = {"prologue": ("▒", "hue1"), "kernel": ("█", "hue0"), "epilogue": ("░", "hue2")}
_BAR_LABEL: Final = 10
"""Cells of the label of a bar."""


class LatencyView(Document):
    """One kernel: medians over its timed launches, and its newest result."""

    def __init__(self, kernel: KernelFacts, inside: Waits | None) -> None:
        self.title = f"Latency of {kernel.demangled}"
        self.name = f"#{kernel.index} {printable(kernel.demangled)}"
        self.inside = inside
        self.simulated = kernel.trace.state.simulated
        parts = {
            "original": kernel.times.originals_ms,
            "prologue": kernel.times.prologues_ms,
            "kernel": kernel.times.probed_ms,
            "epilogue": kernel.times.epilogues_ms,
        }
        timed = {} if self.simulated else parts
        self.milliseconds = {name: np.array(values) for name, values in timed.items() if values}
        self.slowdowns = np.array([] if self.simulated else kernel.times.impacts)

    def lines(self, width: int) -> Sequence[Line]:
        """The launch as bars and distributions, then the warps or blocks in it."""
        lines: list[Line] = [((shorten(self.name, width), "title"),), ()]
        lines += self._outside(width)
        if self.inside is not None:
            lines += [
                (),
                *(((part, ""),) for part in wrap(f"{self.inside.launch_label}: {self.inside.caption}", width)),
            ]
            lines += _rows("cycles", self.inside.values, lambda cycles: units.count(round(cycles)))
            lines += map(unmeasured_row, self.inside.unknown)
        return lines

    def _outside(self, width: int) -> list[Line]:
        if not self.milliseconds:
            why = "no times on a simulated GPU" if self.simulated else "not measured: run with --benchmark"
            return [(("the probed launch  ", "head"), (f"{units.NOT_MEASURED} {why}", "dim"))]
        times = {name: values * 1e-3 for name, values in self.milliseconds.items()}
        lines = _rows("time", times, units.duration)
        if len(self.slowdowns):
            lines += _rows("", {PAIR_RATIO_LABEL: self.slowdowns}, lambda times: f"{times:.2f}×")[1:]
        return [*lines, (), *self._bars(width)]

    def _bars(self, width: int) -> list[Line]:
        """Medians of the parts, one after another, above the original on the same scale."""
        medians = {name: float(np.median(values)) for name, values in self.milliseconds.items()}
        total = sum(medians.get(name, 0.0) for name in _BAR_SIGNS)
        scale = (width - _BAR_LABEL - 1) / max(total, medians.get("original", 0.0))
        probed: list[tuple[str, str]] = [(pad("probed", _BAR_LABEL), "dim")]
        done = 0.0
        for name, (sign, role) in _BAR_SIGNS.items():
            done, before = done + medians.get(name, 0.0), done
            probed.append((sign * (round(done * scale) - round(before * scale)), role))
        lines: list[Line] = [tuple(probed)]
        if "original" in medians:
            bar = "█" * round(medians["original"] * scale)
            lines.append(((pad("original", _BAR_LABEL), "dim"), (bar, "hue3")))
        lines += [((part, "dim"),) for part in wrap(self._legend(medians, total), width)]
        return lines

    def _legend(self, medians: Mapping[str, float], probed: float) -> str:
        """Name the signs, and say how much longer a launch takes; ``probed`` is the sum of its parts in ms."""
        legend = ", ".join(f"{sign} {name}" for name, (sign, _) in _BAR_SIGNS.items())
        lacking = [name for name in (*_BAR_SIGNS, "original") if name not in medians]
        if lacking:
            return f"medians: {legend}; {' and '.join(lacking)} not measured"
        added = probed - medians["original"]
        return (
            f"medians: {legend}; with the probe, a launch takes {units.duration(added * 1e-3)} longer"
            f" ({probed / medians['original']:.2f}× the original)"
        )

    def record(self) -> dict[str, Any]:
        """Distributions in ms, of the slowdown, and in cycles; None where not measured."""
        parts = {name: _record(self.milliseconds.get(name)) for name in ("original", *_BAR_SIGNS)}
        inside = None
        if self.inside is not None:
            values = {name.replace(" ", "_"): _record(waits) for name, waits in self.inside.values.items()}
            values |= {name.replace(" ", "_"): None for name in self.inside.unknown}
            inside = {"result": self.inside.launch_label, "cycles": values}
        slowdown = _record(self.slowdowns) if len(self.slowdowns) else None
        return {"milliseconds": parts, "slowdown": slowdown, "inside": inside}

    def cells(self) -> Iterator[Sequence[object]]:
        """A row a distribution."""
        first = distribution(np.zeros(1))
        yield ("of", "unit", *(first.record() if first else ()))
        groups: list[tuple[str, Mapping[str, NDArray[Any]]]] = [("ms", self.milliseconds)]
        groups.append(("times", {"slowdown": self.slowdowns}))
        groups.append(("cycles", self.inside.values if self.inside else {}))
        for unit, values in groups:
            for name, numbers in values.items():
                spread = distribution(numbers)
                if spread is not None:
                    yield (name, unit, *spread.record().values())


def _rows(head: str, values: Mapping[str, NDArray[Any]], show: Callable[[float], str]) -> list[Line]:
    lines = [distribution_titles(head)]
    for label, numbers in values.items():
        spread = distribution(numbers)
        if spread is not None:
            lines.append(distribution_row(label, spread, show))
    return lines


def _record(values: NDArray[Any] | None) -> dict[str, float] | None:
    spread = None if values is None else distribution(values)
    return None if spread is None else spread.record()


def _inside(source: ViewSource, progress: Progress) -> Waits | None:
    """Waits in the result, if it is one of a probe that measures them."""
    if no_result_reason(source, *KIND.probes) is not None:
        return None
    read = known_probe(source.kernel).waits
    return None if read is None else read(probe_results.read_result(source), progress)


def _unavailable_reason(source: ViewSource) -> str | None:
    if source.kernel.times.probed_ms and not source.trace.state.simulated:
        return None
    why = no_result_reason(source, *KIND.probes)
    return why and f"{why}; or measure times with --benchmark"


def _open_view(source: ViewSource, progress: Progress) -> LatencyView:
    progress(0.0)
    return LatencyView(source.kernel, _inside(source, progress))


KIND: Final = ViewKind(
    "latency",
    "Latency",
    "cost of a probe, times of waits and of blocks",
    _unavailable_reason,
    _open_view,
    explanation=(
        "Time that the probe adds outside of the kernel, measured by --benchmark: the hook clears the records before"
        " the kernel and copies the records back after the kernel. The part below shows waits inside the kernel, at"
        " barriers or between blocks.",
    ),
    order=60,
    short_title="Lat",
    fed_by=lambda: probe_names_where(lambda probe: probe.waits),
)

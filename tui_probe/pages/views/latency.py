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
_BAR_LABEL_CELLS: Final = 10
"""Cells of the label of a bar."""


class LatencyView(Document):
    """One kernel: medians over its timed launches, and its newest result."""

    def __init__(self, kernel: KernelFacts, waits: Waits | None) -> None:
        self.title = f"Latency of {kernel.demangled}"
        self.name = f"#{kernel.index} {printable(kernel.demangled)}"
        self.waits = waits
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
        """Return the launch as bars and distributions, then the warps or blocks in it."""
        lines: list[Line] = [((shorten(self.name, width), "title"),), ()]
        lines += self._launch_lines(width)
        if self.waits is not None:
            lines += [
                (),
                *(((part, ""),) for part in wrap(f"{self.waits.launch_label}: {self.waits.caption}", width)),
            ]
            lines += _rows("cycles", self.waits.values, lambda cycles: units.count(round(cycles)))
            lines += map(unmeasured_row, self.waits.unknown)
        return lines

    def _launch_lines(self, width: int) -> list[Line]:
        if not self.milliseconds:
            reason = "no times on a simulated GPU" if self.simulated else "not measured: run with --benchmark"
            return [(("the probed launch  ", "head"), (f"{units.NOT_MEASURED} {reason}", "dim"))]
        times = {name: values * 1e-3 for name, values in self.milliseconds.items()}
        lines = _rows("time", times, units.duration)
        if len(self.slowdowns):
            lines += _rows("", {PAIR_RATIO_LABEL: self.slowdowns}, lambda times: f"{times:.2f}×")[1:]
        return [*lines, (), *self._bars(width)]

    def _bars(self, width: int) -> list[Line]:
        """Medians of the parts, one after another, above the original on the same scale."""
        medians = {name: float(np.median(values)) for name, values in self.milliseconds.items()}
        total = sum(medians.get(name, 0.0) for name in _BAR_SIGNS)
        scale = (width - _BAR_LABEL_CELLS - 1) / max(total, medians.get("original", 0.0))
        probed_bar: list[tuple[str, str]] = [(pad("probed", _BAR_LABEL_CELLS), "dim")]
        bar_end = 0.0
        for name, (sign, role) in _BAR_SIGNS.items():
            bar_end, bar_start = bar_end + medians.get(name, 0.0), bar_end
            probed_bar.append((sign * (round(bar_end * scale) - round(bar_start * scale)), role))
        lines: list[Line] = [tuple(probed_bar)]
        if "original" in medians:
            bar = "█" * round(medians["original"] * scale)
            lines.append(((pad("original", _BAR_LABEL_CELLS), "dim"), (bar, "hue3")))
        lines += [((part, "dim"),) for part in wrap(self._legend(medians, total), width)]
        return lines

    def _legend(self, medians: Mapping[str, float], probed_ms: float) -> str:
        """Name the signs, and say how much longer a launch takes; ``probed_ms`` is the sum of its parts in ms."""
        legend = ", ".join(f"{sign} {name}" for name, (sign, _) in _BAR_SIGNS.items())
        missing_parts = [name for name in (*_BAR_SIGNS, "original") if name not in medians]
        if missing_parts:
            return f"medians: {legend}; {' and '.join(missing_parts)} not measured"
        added_ms = probed_ms - medians["original"]
        return (
            f"medians: {legend}; with the probe, a launch takes {units.duration(added_ms * 1e-3)} longer"
            f" ({probed_ms / medians['original']:.2f}× the original)"
        )

    def record(self) -> dict[str, Any]:
        """Distributions in ms, of the slowdown, and in cycles; None where not measured."""
        parts = {name: _record(self.milliseconds.get(name)) for name in ("original", *_BAR_SIGNS)}
        waits_record = None
        if self.waits is not None:
            values = {name.replace(" ", "_"): _record(waits) for name, waits in self.waits.values.items()}
            values |= {name.replace(" ", "_"): None for name in self.waits.unknown}
            waits_record = {"result": self.waits.launch_label, "cycles": values}
        slowdown = _record(self.slowdowns) if len(self.slowdowns) else None
        return {"milliseconds": parts, "slowdown": slowdown, "inside": waits_record}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row a distribution."""
        example = distribution(np.zeros(1))
        yield ("of", "unit", *(example.record() if example else ()))
        groups: list[tuple[str, Mapping[str, NDArray[Any]]]] = [("ms", self.milliseconds)]
        groups.append(("times", {"slowdown": self.slowdowns}))
        groups.append(("cycles", self.waits.values if self.waits else {}))
        for unit, values in groups:
            for name, numbers in values.items():
                spread = distribution(numbers)
                if spread is not None:
                    yield (name, unit, *spread.record().values())


def _rows(head: str, values: Mapping[str, NDArray[Any]], format_value: Callable[[float], str]) -> list[Line]:
    lines = [distribution_titles(head)]
    for label, numbers in values.items():
        spread = distribution(numbers)
        if spread is not None:
            lines.append(distribution_row(label, spread, format_value))
    return lines


def _record(values: NDArray[Any] | None) -> dict[str, float] | None:
    spread = None if values is None else distribution(values)
    return None if spread is None else spread.record()


def _read_result_waits(source: ViewSource, progress: Progress) -> Waits | None:
    """Waits in the result, if it is one of a probe that measures them."""
    if no_result_reason(source, *KIND.probes) is not None:
        return None
    read_waits = known_probe(source.kernel).waits
    return None if read_waits is None else read_waits(probe_results.read_result(source), progress)


def _unavailable_reason(source: ViewSource) -> str | None:
    if source.kernel.times.probed_ms and not source.trace.state.simulated:
        return None
    reason = no_result_reason(source, *KIND.probes)
    return reason and f"{reason}; or measure times with --benchmark"


def _open_view(source: ViewSource, progress: Progress) -> LatencyView:
    progress(0.0)
    return LatencyView(source.kernel, _read_result_waits(source, progress))


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

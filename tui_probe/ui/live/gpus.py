"""GPUs of a run: load, memory, clocks, temperature and power, sampled once a second, and their page."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_probe.draw import units
from tui_probe.draw.charts import column_chart
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import Line, pad, wrap
from tui_probe.nvml import GpuSample, open_nvml, sample_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.trace.event_types import Device

HISTORY = 240
"""Samples per GPU: those of the last four minutes."""
SAMPLE_INTERVAL = 1.0
"""Seconds between two samples."""
LABEL_CELLS = 14
ENDED_TEXT = "Load, memory, clocks, temperature and power are shown only while the program runs."


@dataclass(frozen=True)
class GpuView:
    """The newest samples with the load of the time before, oldest first; ``absent`` says why there are none."""

    samples: tuple[GpuSample, ...] = ()
    loads: tuple[tuple[int | None, ...], ...] = ()
    missing_reason: str = "not sampled yet"


class GpuSampler:
    """Samples in a daemon thread until stopped. ``latest`` is replaced as a whole, so any thread may read it."""

    def __init__(self, opener: Callable[[], tuple[Any, str]] = open_nvml, interval: float = SAMPLE_INTERVAL) -> None:
        self.latest = GpuView()
        self._opener = opener
        self._interval = interval
        self._stop = threading.Event()
        self._loads: list[deque[int | None]] = []
        self._thread = threading.Thread(target=self._sample_until_stopped, name="tui-probe-gpu", daemon=True)

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> None:
        """Take no further sample."""
        self._stop.set()

    def _sample_until_stopped(self) -> None:
        nvml, reason = self._opener()
        if nvml is None:
            self.latest = GpuView(missing_reason=reason)
            return
        while not self._stop.is_set():
            try:
                self._add_samples(sample_all(nvml))
            except nvml.NVMLError as error:
                self.latest = GpuView(missing_reason=f"NVIDIA management library: {error}")
            self._stop.wait(self._interval)

    def _add_samples(self, samples: tuple[GpuSample, ...]) -> None:
        if not samples:
            self.latest = GpuView(missing_reason="the NVIDIA driver reports no GPU")
            return
        while len(self._loads) < len(samples):
            self._loads.append(deque(maxlen=HISTORY))
        for history, sample in zip(self._loads, samples, strict=False):
            history.append(sample.load)
        self.latest = GpuView(samples, tuple(tuple(history) for history in self._loads), "")


def device_lines(devices: Sequence[Device], cells: int, *, simulated: bool) -> list[Line]:
    """The devices of the run, wherever and whenever it ran."""
    lines: list[Line] = []
    for device in devices:
        clock = f", up to {device.clock_khz / 1000:.0f} MHz" if device.clock_khz and not simulated else ""
        summary = f"{units.counted(device.sms, 'SM')}, compute capability {device.capability}{clock}"
        lines += [
            ((f" device {device.ordinal} of the run  {printable(device.name)}", "title"),),
            *_text_lines(summary, cells, ""),
        ]
    if not devices:
        lines += _text_lines("The trace does not name the device.", cells)
    if simulated:
        lines += _text_lines("A simulated GPU has no load, clocks or power.", cells, "note")
    return [*lines, ()]


def ended_lines(cells: int) -> list[Line]:
    """Return the lines shown instead of load for a program that is not running."""
    return _text_lines(ENDED_TEXT, cells)


def gpu_lines(view: GpuView, cells: int, *, ascii_only: bool) -> list[Line]:
    """The GPUs of this machine in ``cells`` cells. Says why where there is none."""
    lines: list[Line] = []
    if not view.samples:
        return [((" no GPU", "title"),), *_text_lines(view.missing_reason, cells)]
    for index, (sample, loads) in enumerate(zip(view.samples, view.loads, strict=True)):
        lines += _sample_lines(index, sample, loads, cells, ascii_only=ascii_only)
    return lines


def _sample_lines(
    index: int, sample: GpuSample, loads: tuple[int | None, ...], cells: int, *, ascii_only: bool
) -> list[Line]:
    chart_cells = max(10, min(cells - LABEL_CELLS - 10, 120))
    chart = column_chart(loads, chart_cells, 3, maximum=100, ascii_only=ascii_only)
    lines: list[Line] = [((f" GPU {index}  {sample.name}", "title"),)]
    for row, (marks, edge) in enumerate(zip(chart, ("100 %", "", "0 %"), strict=True)):
        label = pad("load" if row == 0 else "", LABEL_CELLS)
        value = _with_unit(sample.load, "%") if row == 0 else ""
        lines.append(((" " + label, "dim"), (pad(value, 6), ""), (marks, "accent"), (f" {edge}", "dim")))
    lines += [
        _field("memory", f"{units.size(sample.memory_used)} of {units.size(sample.memory_total)}"),
        _field("memory load", _with_unit(sample.memory_load, "%")),
        _field("clocks", f"SM {_with_unit(sample.sm_clock, 'MHz')} of {_with_unit(sample.sm_clock_max, 'MHz')}"
               f" · memory {_with_unit(sample.memory_clock, 'MHz')}"),
        _field("temperature", _with_unit(sample.temperature, "°C")),
        _field("power", f"{_with_unit(sample.power, 'W')} of {_with_unit(sample.power_limit, 'W')}"),
        (),
    ]  # fmt: skip
    return lines


def _text_lines(words: str, cells: int, role: str = "dim") -> list[Line]:
    return [((f" {part}", role),) for part in wrap(words, cells - 2)]


def _field(label: str, text: str) -> Line:
    return ((" " + pad(label, LABEL_CELLS), "dim"), (text, ""))


def _with_unit(value: float | None, unit: str) -> str:
    return units.NOT_MEASURED if value is None else f"{value:.0f} {unit}"

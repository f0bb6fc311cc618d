"""The GPUs on a page: what the trace knows of them, and while the program runs numbers and the load as a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.spans import Line, pad, wrap
from tui_probe.draw.sparkline import column_chart
from tui_probe.draw.table import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.process_events import Device
    from tui_probe.ui.nvml import GpuSample, GpuView

LABEL = 14


NOT_NOW = "Load, memory, clocks, temperature and power are shown only while the program runs."


def device_lines(devices: Sequence[Device], cells: int, *, simulated: bool) -> list[Line]:
    """The devices of the run, wherever and whenever it ran."""
    lines: list[Line] = []
    for device in devices:
        clock = f", up to {device.clock_khz / 1000:.0f} MHz" if device.clock_khz and not simulated else ""
        words = f"{units.counted(device.sms, 'SM')}, compute capability {device.capability}{clock}"
        lines += [((f" device {device.ordinal} of the run  {safe(device.name)}", "title"),), *_said(words, cells, "")]
    if not devices:
        lines += _said("The trace does not say on which device the program ran.", cells)
    if simulated:
        lines += _said("A simulated GPU has no load, clocks or power.", cells, "note")
    return [*lines, ()]


def not_now(cells: int) -> list[Line]:
    """What stands in the place of figures of a program that does not run."""
    return _said(NOT_NOW, cells)


def gpu_lines(view: GpuView, cells: int, *, ascii_only: bool) -> list[Line]:
    """The GPUs of this machine in ``cells`` cells. Says why where there is none."""
    lines: list[Line] = []
    if not view.samples:
        return [((" no GPU", "title"),), *_said(view.absent, cells)]
    for index, (sample, loads) in enumerate(zip(view.samples, view.loads, strict=True)):
        lines += _gpu(index, sample, loads, cells, ascii_only=ascii_only)
    return lines


def _gpu(index: int, sample: GpuSample, loads: tuple[int | None, ...], cells: int, *, ascii_only: bool) -> list[Line]:
    chart_cells = max(10, min(cells - LABEL - 10, 120))
    chart = column_chart(loads, chart_cells, 3, high=100, ascii_only=ascii_only)
    lines: list[Line] = [((f" GPU {index}  {sample.name}", "title"),)]
    for row, (marks, edge) in enumerate(zip(chart, ("100 %", "", "0 %"), strict=True)):
        label = pad("load" if row == 0 else "", LABEL)
        value = _with(sample.load, "%") if row == 0 else ""
        lines.append(((" " + label, "dim"), (pad(value, 6), ""), (marks, "accent"), (f" {edge}", "dim")))
    lines += [
        _field("memory", f"{units.size(sample.memory_used)} of {units.size(sample.memory_total)}"),
        _field("memory load", _with(sample.memory_load, "%")),
        _field("clocks", f"SM {_with(sample.sm_clock, 'MHz')} of {_with(sample.sm_clock_max, 'MHz')}"
               f" · memory {_with(sample.memory_clock, 'MHz')}"),
        _field("temperature", _with(sample.temperature, "°C")),
        _field("power", f"{_with(sample.power, 'W')} of {_with(sample.power_limit, 'W')}"),
        (),
    ]  # fmt: skip
    return lines


def _said(words: str, cells: int, role: str = "dim") -> list[Line]:
    return [((f" {part}", role),) for part in wrap(words, cells - 2)]


def _field(label: str, text: str) -> Line:
    return ((" " + pad(label, LABEL), "dim"), (text, ""))


def _with(value: float | None, unit: str) -> str:
    return units.NOT_MEASURED if value is None else f"{value:.0f} {unit}"

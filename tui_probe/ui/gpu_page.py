"""The GPUs on a page: numbers, and the load of the last minutes as a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.draw.spans import Line, pad
from tui_probe.draw.sparkline import column_chart

if TYPE_CHECKING:
    from tui_probe.ui.nvml import GpuSample, GpuView

LABEL = 14


def gpu_lines(view: GpuView, cells: int, *, simulated: bool, ascii_only: bool) -> list[Line]:
    """The page in ``cells`` cells. Says why where there is no GPU, and that a simulated one has no load."""
    lines: list[Line] = []
    if simulated:
        lines += [((" simulated GPU: it has no load, clocks or power", "note"),), ()]
    if not view.samples:
        return [*lines, ((" no GPU", "title"),), ((f" {view.absent}", "dim"),)]
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


def _field(label: str, text: str) -> Line:
    return ((" " + pad(label, LABEL), "dim"), (text, ""))


def _with(value: float | None, unit: str) -> str:
    return units.NOT_MEASURED if value is None else f"{value:.0f} {unit}"

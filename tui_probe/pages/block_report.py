"""The block schedules of a trace: a line a result, and the SMs of each kernel's last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.hanging import hanging
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column, safe
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.analyses import AnalysedResult, block_schedules, has_block_schedule
from tui_probe.probekit.block_sched import LEGEND, schedule_line, sm_lines, sm_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.probekit.counts import CountedResult
    from tui_probe.trace.model import Trace

_FIGURES: Final = ("running", "scheduling", "ramp", "tail", "span")
_COUNTS: Final = ("blocks", "warps_missing", "blocks_missing", "blocks_astray")


def block_lines(trace: Trace, cells: int) -> Iterator[str]:
    """The page as text."""
    kernels = [kernel for kernel in trace.kernels if has_block_schedule(kernel)]
    if not kernels:
        yield "No kernel has results of block_sched: run with -p block_sched."
    for kernel in kernels:
        yield f"#{kernel.index} {shorten(safe(kernel.demangled), cells - 8)}"
        last = None
        for result in block_schedules(trace, kernel):
            yield from hanging(f"  {launch_label(result)}: {said(result, simulated=trace.state.simulated)}", cells)
            last = result if result.schedule else last
        if last is not None and last.schedule is not None:
            yield ""
            yield from hanging(f"  SMs of {launch_label(last)}, cycles a slot: {LEGEND}", cells)
            yield from (f"  {line}" for line in sm_lines(last.schedule, cells - 2))
        yield ""


def launch_label(result: AnalysedResult | CountedResult) -> str:
    """``launch 7``, or the file where the log does not say the launch."""
    number = None if result.launch is None else result.launch.number
    return f"result/{result.file}" if number is None else f"launch {number}"


def said(result: AnalysedResult, *, simulated: bool) -> str:
    """The schedule in one line, or why there is none."""
    if result.schedule is None:
        return safe(result.problem or NOT_MEASURED)
    return schedule_line(result.schedule, simulated=simulated)


def _of(key: str) -> Callable[[AnalysedResult], Any]:
    return lambda result: None if result.schedule is None else getattr(result.schedule, key)


def _cycles(key: str) -> Callable[[AnalysedResult], str]:
    value = _of(key)
    return lambda result: NOT_MEASURED if result.schedule is None else f"{value(result):.0f}"


BLOCK_COLUMNS: Final[tuple[Column[AnalysedResult], ...]] = (
    Column("kernel", lambda r: r.kernel.index, "#", lambda r: str(r.kernel.index)),
    Column("name", lambda r: r.kernel.name),
    Column("demangled", lambda r: r.kernel.demangled, "kernel", lambda r: r.kernel.demangled, False, 0, 16, shorten),
    Column("launch", lambda r: r.launch.number if r.launch else None, "launch", launch_label, False),
    Column("result", lambda r: f"result/{r.file}"),
    *(Column(key, _of(key), key.replace("_", " "), _cycles(key)) for key in (*_COUNTS[:1], *_FIGURES)),
    *(Column(key, _of(key)) for key in _COUNTS[1:]),
    Column("simulated", lambda r: r.kernel.trace.state.simulated),
    Column("problem", lambda r: r.problem, "problem", lambda r: r.problem or "", False, 1, 20),
    Column("sms", lambda r: None if r.schedule is None else sm_record(r.schedule), nested=True),
)
"""Cycles are means over the slots of an SM, and for a whole launch over SMs; ``sms`` has a list an SM for each."""

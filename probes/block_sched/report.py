"""The block schedules of a trace: a line for each result, and the SMs of each kernel's last one."""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.slots import PARTS
from tui_probe.draw.hanging import hanging
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column, safe
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.kind import TracePage
from tui_probe.probekit.many import kernel_lines
from tui_probe.probekit.measured import all_measured, measured, probe_of

from .words import LEGEND, sm_lines, sm_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.probekit.measured import Measured
    from tui_probe.trace.model import Kernel, Trace

_FIGURES: Final = {**PARTS, "span": "span"}
_COUNTS: Final = ("warps_missing", "blocks_missing", "blocks_astray")


def _kernels(trace: Trace) -> list[Kernel]:
    """Those that this probe has results of."""
    kernels = chain.from_iterable(kernel.by_probe() for kernel in trace.kernels)
    return [kernel for kernel in kernels if kernel.result_rows and _is_shown(kernel)]


def _is_shown(kernel: Kernel) -> bool:
    return any(page.name == REPORT.name for page in probe_of(kernel).pages)


def _lines(trace: Trace, cells: int) -> Iterator[str]:
    kernels = _kernels(trace)
    if not kernels:
        yield "No kernel has block schedules: run with -p block_sched."
    for kernel in kernels:
        yield f"#{kernel.index} {shorten(safe(kernel.demangled), cells - 8)}"
        yield from kernel_lines(trace, kernel, cells, len(kernels))
        last = _last(trace, kernel)
        if last is not None:
            yield ""
            yield from hanging(f"  SMs of {last.label}, cycles per slot: {LEGEND}", cells)
            yield from (f"  {line}" for line in sm_lines(last.analysis, cells - 2))
        yield ""


def _last(trace: Trace, kernel: Kernel) -> Measured | None:
    """The newest result that can be read."""
    results = (measured(trace, kernel, row) for row in reversed(kernel.result_rows))
    return next((result for result in results if result.analysis), None)


def _rows(trace: Trace) -> Iterator[Measured]:
    return chain.from_iterable(all_measured(trace, kernel) for kernel in _kernels(trace))


def _of(key: str) -> Callable[[Measured], Any]:
    read = attrgetter(key)
    return lambda result: None if result.analysis is None else read(result.analysis)


def _cycles(key: str) -> Callable[[Measured], str]:
    value = _of(key)
    return lambda result: NOT_MEASURED if result.analysis is None else f"{value(result):.0f}"


_COLUMNS: Final[tuple[Column[Measured], ...]] = (
    Column("kernel", lambda r: r.kernel.index, "#", lambda r: str(r.kernel.index)),
    Column("name", lambda r: r.kernel.name),
    Column("demangled", lambda r: r.kernel.demangled, "kernel", lambda r: r.kernel.demangled, False, 0, 16, shorten),
    Column("launch", lambda r: r.launch.number if r.launch else None, "launch", lambda r: r.label, False),
    Column("result", lambda r: f"result/{r.file}"),
    Column("blocks", _of("blocks"), "blocks", _cycles("blocks")),
    *(Column(key, _of(key), words, _cycles(key)) for key, words in _FIGURES.items()),
    *(Column(key, _of(key)) for key in _COUNTS),
    Column("simulated", lambda r: r.kernel.trace.state.simulated),
    Column("problem", lambda r: r.problem, "problem", lambda r: r.problem or "", False, 1, 20),
    Column("sms", lambda r: None if r.analysis is None else sm_record(r.analysis), nested=True),
)
"""Cycles are means over the slots of an SM, and for a whole launch over SMs; ``sms`` has a list, one number per SM."""

REPORT: Final = TracePage("blocks", _lines, _COLUMNS, _rows)

"""Which analysis a result gets, by the callback that its probe names, and what it says in one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.block_sched import BlockSchedule, analyse
from tui_probe.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, Trace

BLOCK_SCHED: Final = ("block_sched", "block_sched.py")


@dataclass(frozen=True, slots=True)
class AnalysedResult:
    """One result file and its block schedule, or why there is none. ``launch`` is None if the log does not say."""

    kernel: Kernel
    file: str
    launch: Launch | None
    schedule: BlockSchedule | None
    problem: str | None


def has_block_schedule(kernel: Kernel) -> bool:
    """Whether the probe of this kernel records block schedules."""
    info = kernel.info
    return bool(kernel.result_rows) and info is not None and info.callback in BLOCK_SCHED


def block_schedules(trace: Trace, kernel: Kernel, *, most: int | None = None) -> Iterator[AnalysedResult]:
    """The results of a kernel, analysed, the oldest first, at most ``most`` of them."""
    return (block_schedule(trace, kernel, row) for row in kernel.result_rows[:most])


def block_schedule(trace: Trace, kernel: Kernel, row: int) -> AnalysedResult:
    """The result in a row of the result table, which is one of this kernel's, analysed."""
    launch = trace.results.launch(row)
    known = None if launch is None else trace.launches[launch]
    try:
        schedule, problem = _analyse(trace, kernel, row), None
    except TraceError as error:
        schedule, problem = None, str(error)
    return AnalysedResult(kernel, trace.results.name(row), known, schedule, problem)


def _analyse(trace: Trace, kernel: Kernel, row: int) -> BlockSchedule:
    path = trace.results.path(row)
    if path is None:
        raise TraceError(f"result/{trace.results.name(row)}: the log names it, and it leads out of the trace")
    return analyse(kernel.read(path))

"""What the probe measured, in one line a result, in the order in which results were saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.errors import TraceError
from tui_probe.render.analyses import BLOCK_SCHED, block_schedule
from tui_probe.render.block_report import launch_label, said
from tui_probe.render.count_report import said as counts_said
from tui_probe.render.counts import counted_result, counting_probe
from tui_probe.render.kept import kept_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.model import Kernel, Trace


@dataclass(frozen=True, slots=True)
class ResultLine:
    """One result: its launch, its kernel (None if the log does not say), and what it says."""

    launch: str
    kernel: int | None
    words: str
    failed: bool = False


def result_lines(trace: Trace, first: int, last: int) -> Iterator[ResultLine]:
    """The results ``first`` to before ``last``. Reads each file."""
    for row in range(first, last):
        launch = trace.results.launch(row)
        kernel = None if launch is None else trace.kernels.get(trace.launches[launch].kernel)
        name = f"result/{trace.results.name(row)}"
        if kernel is None:
            yield ResultLine(name, None, "the log does not say of which launch", failed=True)
            continue
        callback = kernel.info.callback if kernel.info else BLOCK_SCHED[0]
        if (probe := counting_probe(callback)) is not None:
            counted = counted_result(trace, kernel, row, probe)
            words = counts_said(counted).replace(f"{trace.directory}/", "")
            yield ResultLine(launch_label(counted), kernel.index, words, failed=counted.counts is None)
            continue
        if callback not in BLOCK_SCHED:
            yield kept_line(trace, kernel, row)
            continue
        result = block_schedule(trace, kernel, row)
        words = said(result, simulated=trace.state.simulated).replace(f"{trace.directory}/", "")
        yield ResultLine(launch_label(result), kernel.index, words, failed=result.schedule is None)


def kept_line(trace: Trace, kernel: Kernel, row: int) -> ResultLine:
    """How much was kept, of a probe that has no analysis in one line."""
    path, launch = trace.results.path(row), trace.results.launch(row)
    label = f"result/{trace.results.name(row)}" if launch is None else f"launch {trace.launches[launch].number}"
    try:
        if path is None:
            raise TraceError("the log names it, and it leads out of the trace")
        return ResultLine(label, kernel.index, kept_words(kernel.read(path)) or "no analysis in one line")
    except TraceError as error:
        return ResultLine(label, kernel.index, str(error).replace(f"{trace.directory}/", ""), failed=True)

"""What the probe measured, in one line a result, in the order in which results were saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.pages.block_report import launch_label, said
from tui_probe.pages.count_report import said as counts_said
from tui_probe.probekit.analyses import BLOCK_SCHED, block_schedule
from tui_probe.probekit.counts import counted_result, counting_probe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.model import Trace


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
        result = block_schedule(trace, kernel, row)
        words = said(result, simulated=trace.state.simulated).replace(f"{trace.directory}/", "")
        yield ResultLine(launch_label(result), kernel.index, words, failed=result.schedule is None)

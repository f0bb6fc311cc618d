"""What the probe measured, in one line a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.analysis import block_sched
from tui_probe.errors import TraceError
from tui_probe.render import units
from tui_probe.trace.results import read_result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.trace.model import Trace


@dataclass(frozen=True, slots=True)
class ResultLine:
    """One result: the kernel and the launch it belongs to (None if the log does not say), and what it says."""

    kernel: int | None
    launch: int | None
    file: str
    words: str
    failed: bool = False


def result_lines(trace: Trace, first: int, last: int) -> Iterator[ResultLine]:
    """The results ``first`` to before ``last``, in the order in which they were saved. Reads each file."""
    for row in range(first, last):
        launch_row = trace.results.launch(row)
        launch = None if launch_row is None else trace.launches[launch_row]
        kernel = None if launch is None else launch.kernel
        name = trace.results.name(row)
        path = trace.results.path(row)
        try:
            words, failed = _analysis(trace, kernel, path, name), False
        except TraceError as error:
            words, failed = str(error).replace(f"{trace.directory}/", ""), True
        yield ResultLine(kernel, None if launch is None else launch.number, name, words, failed)


def _analysis(trace: Trace, kernel: int | None, path: Path | None, name: str) -> str:
    if path is None:
        raise TraceError(f"result/{name}: the log names it, and it is not in the trace")
    known = trace.kernels.get(kernel) if kernel is not None else None
    result = read_result(path) if known is None else known.read(path)
    info = None if known is None else known.info
    if info is not None and info.callback is not None and not info.callback.startswith("block_sched"):
        return f"{units.counted(len(result.maps), 'map')}, {units.size(path.stat().st_size)}; no analysis in one line"
    schedule = block_sched.analyse(result)
    lost = schedule.warps_missing or schedule.blocks_missing or schedule.blocks_astray
    if not lost:
        return schedule.line()
    missing = f"{units.counted(schedule.warps_missing, 'warp')}, {units.counted(schedule.blocks_missing, 'block')}"
    astray = units.counted(schedule.blocks_astray, "block")
    return f"{schedule.line()}  (left out: {missing} without a record, {astray} that changed SM)"

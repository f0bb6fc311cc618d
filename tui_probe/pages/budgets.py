"""What the budgets of a run left out, in words: ``kept 64 of 20 000 launches of saxpy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.table import safe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.event_types import BudgetTold
    from tui_probe.trace.kernel import Kernel
    from tui_probe.trace.model import Trace

OPTIONS: Final = {
    "trace-bytes": "--max-trace-bytes",
    "result-files": "--max-result-files",
    "log-bytes": "--max-log-bytes",
    "share": "--max-trace-bytes",
    "write-rate": "--max-write-rate",
}


_CODES: Final = ("trace-full", "results-full", "trace-share", "write-rate")


def budget_lines(trace: Trace) -> Iterator[str]:
    """A sentence for each budget that refused something."""
    for told in trace.state.budgets.values():
        yield f"{_what(told)}; raise with {OPTIONS[told.name]}"
    if trace.state.budgets.keys() - {"log-bytes"} and (kept := _kept(trace)):
        yield kept


def _what(told: BudgetTold) -> str:
    match told.name:
        case "trace-bytes":
            return f"the trace is full: {units.size(told.limit)}, logs and output included"
        case "result-files":
            return f"the run has {units.counted(told.limit, 'result file')}, as many as allowed"
        case "log-bytes":
            return f"event.log reached {units.size(told.limit)}: launches since then are counted, not listed"
        case "write-rate":
            return f"launches passed while results came faster than {units.rate(told.limit)}, or the disk took them"
        case _:
            return "launches passed that would have taken more than their share of the trace"


def _kept(trace: Trace) -> str:
    """Of the kernel that lost most launches: how many were kept."""
    cut = [kernel for kernel in trace.kernels if _lost(kernel)]
    if not cut:
        return ""
    worst = max(cut, key=_lost)
    words = f"kept {units.count(len(worst.result_rows))} of {units.counted(worst.launches, 'launch')}"
    others = f", and not all of {units.counted(len(cut) - 1, 'other kernel')}" if len(cut) > 1 else ""
    return f"{words} of {safe(worst.name)}{others}"


def _lost(kernel: Kernel) -> int:
    """Launches without a result of a kernel that was, or might have been, probed."""
    reason = kernel.stated_reason
    possible = kernel.status == "probed" or (reason is not None and reason.code in _CODES)
    return kernel.launches - len(kernel.result_rows) if possible else 0

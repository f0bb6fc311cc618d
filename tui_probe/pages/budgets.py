"""What the budgets of a run left out, in words: ``kept 64 of 20 000 launches of saxpy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.table import safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.pages.kernel_row import KernelRow
    from tui_probe.trace.kernel import Kernel
    from tui_probe.trace.model import Trace
    from tui_probe.trace.process_events import BudgetTold

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
    for told in _known(trace):
        yield f"{_what(told)}; raise with {OPTIONS[told.name]}"
    if trace.state.budgets.keys() - {"log-bytes"} and (kept := _kept(trace)):
        yield kept


def budget_record(trace: Trace) -> dict[str, Any]:
    """The same as data: what was reached or thinned, and of how many launches the records were kept.

    ``kept`` is that of the kernel that lost most launches, and in how many ``other_kernels`` not all were kept; None
    where no budget left launches out.
    """
    reached = [
        {
            "name": told.name,
            "reached": told.reached,
            "limit": told.limit,
            "used": told.used,
            "option": OPTIONS[told.name],
        }
        for told in _known(trace)
    ]
    cut = _cut(trace) if trace.state.budgets.keys() - {"log-bytes"} else []
    worst = max(cut, key=_lost, default=None)
    kept = worst and {
        "kernel": worst.name,
        "results": len(worst.result_rows),
        "launches": worst.launches,
        "other_kernels": len(cut) - 1,
    }
    return {"reached": reached, "kept": kept}


def kept_of(rows: Iterable[KernelRow]) -> str:
    """Of the probed kernel that lost most launches: ``kept 64 of 20 000 launches of saxpy``; "" if none lost any."""
    probed = (row for row in rows if row.status == "probed" and row.launches > row.results)
    worst = max(probed, key=lambda row: row.launches - row.results, default=None)
    return "" if worst is None else _kept_words(worst.results, worst.launches, worst.name)


def _known(trace: Trace) -> list[BudgetTold]:
    """Those that this version knows."""
    return [told for told in trace.state.budgets.values() if told.name in OPTIONS]


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
            return "launches beyond their share of the trace passed, or have records of some blocks alone"


def _kept(trace: Trace) -> str:
    """Of the kernel that lost most launches: how many were kept."""
    cut = _cut(trace)
    if not cut:
        return ""
    worst = max(cut, key=_lost)
    others = f", and not all of {units.counted(len(cut) - 1, 'other kernel')}" if len(cut) > 1 else ""
    return _kept_words(len(worst.result_rows), worst.launches, worst.name) + others


def _kept_words(results: int, launches: int, kernel: str) -> str:
    return f"kept {units.count(results)} of {units.counted(launches, 'launch')} of {safe(kernel)}"


def _cut(trace: Trace) -> list[Kernel]:
    return [kernel for kernel in trace.kernels if _lost(kernel)]


def _lost(kernel: Kernel) -> int:
    """Launches without a result of a kernel that was, or might have been, probed."""
    reason = kernel.stated_reason
    possible = kernel.status == "probed" or (reason is not None and reason.code in _CODES)
    return kernel.launches - len(kernel.result_rows) if possible else 0

"""Page ``kernels``: all kernels of a run, with the share of the run that was probed.

Rows are sorted by GPU time, without timed launches by the cycles that a probe counted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tui_probe.draw.spans import wrap
from tui_probe.draw.table import table
from tui_probe.draw.table_content import TableContent
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.verdicts.kernel_columns import KERNEL_COLUMNS, PROBED_MARK, by_time_share, shown_columns
from tui_probe.verdicts.probe_coverage import probe_coverage
from tui_probe.verdicts.run_findings import cycle_shares, whole_run_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui_probe.draw.table import Column
    from tui_probe.trace.model import Kernel, KernelFacts, Trace

_PROBED_NOTE: Final = f"{PROBED_MARK} probed time: no unprobed launch of this kernel was timed"


def kernel_content(trace: Trace) -> TableContent[KernelFacts]:
    """Return the page of all kernels, those that take most of the GPU time first."""
    return TableContent(
        "kernels",
        "Kernels",
        shown_columns(KERNEL_COLUMNS, trace.kernels),
        by_time_share(trace.kernels),
        report=partial(kernel_table, trace),
        slow_extra=partial(whole_run_record, trace),
    )


def kernel_table(trace: Trace, width: int) -> Iterator[str]:
    """Probed share of the run, and the kernels as a table, those with the largest share first."""
    if (coverage := probe_coverage(trace)) is not None:
        yield from [*wrap(f"Probed kernels: {coverage.sentence}", width), ""]
    columns, kernels = _columns_and_kernels(trace)
    yield from table(columns, kernels, width, hide_empty=True)
    if _has_probed_times(trace.kernels):
        yield from ("", _PROBED_NOTE)


def _columns_and_kernels(trace: Trace) -> tuple[list[Column[KernelFacts]], list[Kernel]]:
    """Return the columns and the sorted rows; without times, shares are of the cycles of all launches."""
    columns, kernels = shown_columns(KERNEL_COLUMNS, trace.kernels), by_time_share(trace.kernels)
    shares = cycle_shares(trace)
    if not shares:
        return columns, kernels
    kernels.sort(key=lambda kernel: -shares.get(kernel.index, -1.0))
    return [_cycle_share_column(column, shares) if column.key == "share" else column for column in columns], kernels


def _cycle_share_column(column: Column[KernelFacts], shares: Mapping[int, float]) -> Column[KernelFacts]:
    """Return the column with shares of cycles, from 0 to 1 by kernel index, as its text."""

    def text(kernel: KernelFacts) -> str:
        return f"{shares[kernel.index]:.1%}" if kernel.index in shares else NOT_MEASURED

    return replace(column, text=text)


def _has_probed_times(kernels: Iterable[Kernel]) -> bool:
    """Return whether a time in the table is of probed launches, since no other launch of the kernel was timed."""
    return any(kernel.gpu_time.only_probed for kernel in kernels if kernel.gpu_time is not None)

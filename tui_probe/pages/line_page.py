"""The lines of all kernels of a trace on the screen, those first that waste or wait most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.view import no_progress
from tui_probe.pages.all_lines import LINE_COLUMNS, kernel_lines, nothing
from tui_probe.pages.table_page import TablePage, Words
from tui_probe.probekit import probe_results
from tui_probe.probekit.registry import names_of

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.pages.all_lines import KernelLine
    from tui_probe.trace.model import Trace

ABOUT: Final = (
    "Every line of code of which a probe measured something, in the newest result of each kernel. Each is ranked by"
    " what its probe tells first, waste before use; its share is of all lines of all kernels, by the same probe.",
    "Enter goes to the line in the code of its kernel, and q comes back. Lines of one kernel alone are page 7 of its"
    " screen.",
)


def line_page(trace: Trace, progress: Progress = no_progress) -> TablePage[KernelLine]:
    """All lines, the largest share first."""
    rows = list(kernel_lines(trace, progress))

    def opens(line: KernelLine) -> tuple[Path, int] | None:
        return trace.directory, line.kernel.index

    return TablePage(
        "lines",
        "Lines of all kernels",
        LINE_COLUMNS,
        rows,
        Words((), [_found(rows)] if rows else [], [] if rows else [nothing()], ABOUT),
        opens=opens if rows else None,
        names=lambda line: (line.kernel.demangled, line.place, line.opcode or ""),
    )


def tells_of_lines(trace: Trace) -> bool:
    """Whether the probe of some kernel tells of lines, and has a result."""
    telling = names_of(lambda probe: probe.lines)
    return any(kernel.result_rows and probe_results.probe_of(each) in telling for kernel in trace.kernels
               for each in kernel.by_probe())  # fmt: skip


def _found(rows: list[KernelLine]) -> str:
    kernels = len({line.kernel.index for line in rows})
    return f"{units.counted(len(rows), 'line')} of {units.counted(kernels, 'kernel')}, the worst first"

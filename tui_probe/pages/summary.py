"""The report of a run: its kernels, what their probes say, and what was not probed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.hanging import hanging
from tui_probe.draw.spans import to_ascii
from tui_probe.draw.table import safe
from tui_probe.pages.bounds import bound_lines
from tui_probe.pages.head import head_lines
from tui_probe.pages.kernel_report import kernel_table
from tui_probe.pages.not_probed import IN_VAIN, REMARKS, in_vain_lines, not_probed_lines, remark_lines
from tui_probe.pages.results_report import result_lines
from tui_probe.pages.worst_lines import worst_lines

if TYPE_CHECKING:
    from tui_probe.trace.model import Trace


def run_report(trace: Trace, *, width: int = 100, ascii_only: bool = False, seconds: float | None = None) -> str:
    """The whole report as lines of at most ``width`` cells, with a newline after the last.

    Results are read for so many ``seconds`` at most; None: as long as it takes.
    """
    lines = [*head_lines(trace, width), ""]
    lines += kernel_table(trace, width) if len(trace.kernels) else [_no_kernel(trace)]
    for title, section in (
        ("Which kernels matter, and what bounds each", bound_lines(trace, width - 2)),
        ("What the probe measured", list(result_lines(trace, width - 2, seconds))),
        (IN_VAIN, in_vain_lines(trace, width)),
        (REMARKS, remark_lines(trace, width)),
        ("Not probed", not_probed_lines(trace, width)),
        ("What the hook could not do", [safe(text) for text in trace.state.troubles]),
        ("What the launcher could not do", [safe(text) for text in trace.run_info.messages] if trace.run_info else []),
        ("Where to look first: the worst lines", worst_lines(trace, width - 2, seconds)),
    ):
        if section:
            lines += ["", title, *(f"  {line}" for line in section)]
    lines = [part for line in lines for part in hanging(line, width)]
    return "\n".join(map(to_ascii, lines) if ascii_only else lines) + "\n"


def _no_kernel(trace: Trace) -> str:
    """Only a log that has its beginning can tell that there was nothing."""
    return (
        "No kernel was launched." if trace.state.initialised else "event.log is empty, cut off or damaged: no kernel."
    )

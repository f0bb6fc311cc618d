"""Text report of a run: findings, the limiter of each kernel, tables, and what was not probed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.spans import hang_line, to_ascii
from tui_probe.draw.table import safe
from tui_probe.pages.first_look import TITLE as FIRST_LOOK
from tui_probe.pages.first_look import first_look
from tui_probe.pages.views.results import run_results_lines
from tui_probe.verdicts.kernel_bounds import bounds_section, kernel_bounds
from tui_probe.verdicts.kernel_columns import kernel_table
from tui_probe.verdicts.probe_coverage import NO_MATCH_NOTE, REMARKS, no_match_lines, remark_lines, unprobed_lines
from tui_probe.verdicts.run_outcome import head_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.model import Trace

LIMITERS = "Which kernels matter, and what bounds each"


def run_report(trace: Trace, *, width: int = 100, ascii_only: bool = False, seconds: float | None = None) -> str:
    """Return the report as lines of at most ``width`` cells: findings, limiters, tables.

    Results are read for at most ``seconds``; None: no limit.
    """
    bounds = kernel_bounds(trace, seconds)
    lines = list(head_lines(trace, width))
    if losses := first_look(trace, bounds.kernels, width - 2):
        lines += ["", FIRST_LOOK, *(f"  {line}" for line in losses)]
    lines += _section(LIMITERS, bounds_section(trace, bounds, width - 2))
    lines += ["", *(kernel_table(trace, width) if len(trace.kernels) else [_no_kernel_text(trace)])]
    for title, section in (
        ("What the probe measured", list(run_results_lines(trace, width - 2, seconds))),
        (NO_MATCH_NOTE, no_match_lines(trace, width)),
        (REMARKS, remark_lines(trace, width)),
        ("Not probed", unprobed_lines(trace, width)),
        ("What the hook could not do", [safe(text) for text in trace.state.troubles]),
        ("What the launcher could not do", [safe(text) for text in trace.run_info.messages] if trace.run_info else []),
    ):
        lines += _section(title, section)
    lines = [part for line in lines for part in hang_line(line, width)]
    return "\n".join(map(to_ascii, lines) if ascii_only else lines) + "\n"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    """Return the lines of a section with its title; none for an empty section."""
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _no_kernel_text(trace: Trace) -> str:
    """Only a log that has its beginning can tell that there was nothing."""
    return (
        "No kernel was launched." if trace.state.initialised else "event.log is empty, cut off or damaged: no kernel."
    )

"""Text report of a run: where it loses most, findings, the limiter of each kernel, tables, and what was not probed."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from tui_probe.draw.printable import shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import command_lines, hang_line, to_ascii
from tui_probe.draw.table import safe
from tui_probe.pages.findings_page import LOSSES_TITLE, all_questions
from tui_probe.pages.kernel_table import kernel_table
from tui_probe.pages.unprobed_kernels import NO_MATCH_NOTE, REMARKS, no_match_lines, remark_lines, unprobed_lines
from tui_probe.pages.views.results import run_results_lines
from tui_probe.verdicts.findings import finding_text
from tui_probe.verdicts.kernel_findings import losses_of
from tui_probe.verdicts.kernel_snapshot import sorting_title
from tui_probe.verdicts.run_findings import bounds_section, kernel_bounds, truncated_share_reason
from tui_probe.verdicts.run_outcome import head_lines
from tui_probe.verdicts.unmeasured_probes import unmeasured_probes, unmeasured_texts, unused_probes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.trace.model import Trace
    from tui_probe.verdicts.kernel_findings import KernelFinding
    from tui_probe.verdicts.run_findings import KernelBound

MAX_LOSSES: Final = 8
_NAME_CELLS: Final = 32


def ranked_losses(bounds: Sequence[KernelBound]) -> list[KernelFinding]:
    """All losses of the kernels, the largest first."""
    losses = (loss for bound in bounds for loss in losses_of(bound.findings))
    return sorted(losses, key=lambda loss: loss.order)


def limiter_title(trace: Trace, share_of: str) -> str:
    """``Kernels by share of GPU time, and what bounds each``."""
    comma = "" if share_of else ","
    return f"Kernels{comma} {sorting_title(share_of, simulated=trace.state.simulated)}, and what bounds each"


def first_look(trace: Trace, bounds: Sequence[KernelBound], cells: int) -> list[str]:
    """The few losses that matter most, and what to change; none where nothing stands out and no probe names lines."""
    ranked = ranked_losses(bounds)
    lines = list(chain.from_iterable(_loss_lines(loss, cells) for loss in ranked[:MAX_LOSSES]))
    if any(loss.finding.line for loss in ranked):
        command = f"tui-probe show lines {shell_word(trace.directory)}:KERNEL"
        lines += command_lines("all lines of a kernel:", command, cells)
    return lines


def _loss_lines(loss: KernelFinding, cells: int) -> Iterator[str]:
    kernel, finding = loss.kernel, loss.finding
    mark = "!" if finding.stands_out else " "
    share = "" if loss.share is None else f" {loss.share:>4.0%}"
    name = shorten(safe(kernel.demangled), _NAME_CELLS)
    head = f"{mark}{share} #{kernel.index} {name}"
    yield from hang_line(f"{head}  {finding.label}: {finding_text(kernel, finding)}", cells)
    if finding.stands_out and finding.advice:
        yield from hang_line(f"      fix: {finding.advice}", cells)
    question = next((asked for asked in all_questions() if finding.asks and asked.key == finding.asks), None)
    if finding.stands_out and question is not None:
        yield from hang_line(f"      {question.words} run {question.option}", cells)


def run_report(trace: Trace, *, width: int = 100, ascii_only: bool = False, seconds: float | None = None) -> str:
    """Return the report as lines of at most ``width`` cells: findings, limiters, tables.

    Results are read for at most ``seconds``; None: no limit.
    """
    bounds = kernel_bounds(trace, seconds)
    lines = list(head_lines(trace, width))
    if losses := first_look(trace, bounds.kernels, width - 2):
        lines += ["", LOSSES_TITLE, *(f"  {line}" for line in losses)]
    bounds_lines = bounds_section(trace, bounds, width - 2)
    if losses and not bounds_lines and not bounds.of and (reason := truncated_share_reason(trace)):
        lines.append(f"  no shares: {reason}")
    lines += _section(limiter_title(trace, bounds.of), bounds_lines)
    lines += ["", *(kernel_table(trace, width) if len(trace.kernels) else [_no_kernel_text(trace)])]
    for title, section in (
        ("Values of the probe", list(run_results_lines(trace, width - 2, seconds))),
        (NO_MATCH_NOTE, no_match_lines(trace, width)),
        (REMARKS, remark_lines(trace, width)),
        ("Not probed", unprobed_lines(trace, width)),
        ("Problems of the hook", [safe(text) for text in trace.state.troubles]),
        ("Problems of the launcher", [safe(text) for text in trace.run_info.messages] if trace.run_info else []),
    ):
        lines += _section(title, section)
    lines = [part for line in lines for part in hang_line(line, width)]
    return "\n".join(map(to_ascii, lines) if ascii_only else lines) + "\n"


def unmeasured_lines(trace: Trace, cells: int) -> list[str]:
    """Return all that was not measured, with the reasons: probes, kernels, launches, and kernels without a match."""
    unused = unused_probes(trace)
    names = {probe.probe for probe in unused}
    lines = list(unmeasured_texts(unused))
    for kernel in trace.kernels:
        missing = (probe for probe in unmeasured_probes(kernel) if probe.probe not in names)
        lines += [f"#{kernel.index} {safe(kernel.demangled)}: {text}" for text in unmeasured_texts(missing)]
    lines += [*unprobed_lines(trace, cells), *no_match_lines(trace, cells)]
    return lines or ["each kernel has a result of each probe of the run"]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    """Return the lines of a section with its title; none for an empty section."""
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _no_kernel_text(trace: Trace) -> str:
    """Return why there is no kernel: only a log that has its beginning shows that none was launched."""
    return (
        "No kernel was launched." if trace.state.initialised else "No kernel: event.log is empty, truncated or damaged."
    )

"""Text report of a run: where it loses most, findings, the limiter of each kernel, tables, and what was not probed.

Its table of kernels is the page ``kernels``, too. Kernels are sorted by GPU time, without timed launches by the cycles
that a probe counted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import command_lines, hang_line, to_ascii, wrap
from tui_probe.draw.table import table
from tui_probe.draw.table_content import TableContent
from tui_probe.pages.findings_page import LOSSES_TITLE, all_questions
from tui_probe.pages.unprobed_kernels import NO_MATCH_NOTE, REMARKS, no_match_lines, remark_lines, unprobed_lines
from tui_probe.pages.views.results import run_results_lines
from tui_probe.verdicts.findings import finding_text
from tui_probe.verdicts.kernel_columns import KERNEL_COLUMNS, PROBED_MARK, by_time_share, shown_columns
from tui_probe.verdicts.kernel_findings import losses_of
from tui_probe.verdicts.kernel_snapshot import GPU_TIME, sorting_title
from tui_probe.verdicts.limiter import has_limiter_counts
from tui_probe.verdicts.limiter_text import limiter_texts
from tui_probe.verdicts.probe_coverage import (
    probe_coverage,
    unmeasured_probes,
    unmeasured_texts,
    unprobed_reason,
    unused_probes,
)
from tui_probe.verdicts.run_findings import cycle_shares, kernel_bounds, whole_run_record
from tui_probe.verdicts.run_outcome import head_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tui_probe.draw.table import Column
    from tui_probe.trace.model import Kernel, KernelFacts, Trace
    from tui_probe.verdicts.kernel_findings import KernelFinding
    from tui_probe.verdicts.run_findings import KernelBound, RunBounds

MAX_LOSSES: Final = 8
_NAME_CELLS: Final = 32
"""Cells of a kernel's name in a loss."""
_TRUNCATED_NAME_CELLS: Final = 40
"""Cells of the name of a kernel whose result is truncated."""
_PROBED_NOTE: Final = f"{PROBED_MARK} probed time: no unprobed launch of this kernel was timed"


def ranked_losses(bounds: Sequence[KernelBound]) -> list[KernelFinding]:
    """Return all losses of the kernels, the largest first."""
    losses = (loss for bound in bounds for loss in losses_of(bound.findings))
    return sorted(losses, key=lambda loss: loss.order)


def limiter_title(trace: Trace, share_of: str) -> str:
    """Return ``Kernels by share of GPU time, and what bounds each``."""
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
    name = shorten(printable(kernel.demangled), _NAME_CELLS)
    head = f"{mark}{share} #{kernel.index} {name}"
    yield from hang_line(f"{head}  {finding.label}: {finding_text(kernel, finding)}", cells)
    if finding.stands_out and finding.advice:
        yield from hang_line(f"      fix: {finding.advice}", cells)
    question = next(
        (
            candidate
            for candidate in all_questions()
            if finding.next_question and candidate.key == finding.next_question
        ),
        None,
    )
    if finding.stands_out and question is not None:
        yield from hang_line(f"      {question.text} run {question.option}", cells)


def run_report(trace: Trace, *, width: int = 100, ascii_only: bool = False, seconds: float | None = None) -> str:
    """Return the report as lines of at most ``width`` cells: findings, limiters, tables.

    Results are read for at most ``seconds``; None: no limit.
    """
    bounds = kernel_bounds(trace, seconds)
    lines = list(head_lines(trace, width))
    if losses := first_look(trace, bounds.kernels, width - 2):
        lines += ["", LOSSES_TITLE, *(f"  {line}" for line in losses)]
    bounds_lines = bounds_section(trace, bounds, width - 2)
    if losses and not bounds_lines and not bounds.share_of and (reason := _truncated_share_reason(trace)):
        lines.append(f"  no shares: {reason}")
    lines += _section(limiter_title(trace, bounds.share_of), bounds_lines)
    lines += ["", *(kernel_table(trace, width) if len(trace.kernels) else [_no_kernel_text(trace)])]
    for title, section in (
        ("Values of the probe", list(run_results_lines(trace, width - 2, seconds))),
        (NO_MATCH_NOTE, no_match_lines(trace, width)),
        (REMARKS, remark_lines(trace, width)),
        ("Not probed", unprobed_lines(trace, width)),
        ("Problems of the hook", [printable(text) for text in trace.state.troubles]),
        ("Problems of the launcher", [printable(text) for text in trace.run_info.messages] if trace.run_info else []),
    ):
        lines += _section(title, section)
    lines = [part for line in lines for part in hang_line(line, width)]
    return "\n".join(map(to_ascii, lines) if ascii_only else lines) + "\n"


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
        return f"{shares[kernel.index]:.1%}" if kernel.index in shares else units.NOT_MEASURED

    return replace(column, text=text)


def _has_probed_times(kernels: Iterable[Kernel]) -> bool:
    """Return whether a time in the table is of probed launches, since no other launch of the kernel was timed."""
    return any(kernel.gpu_time.only_probed for kernel in kernels if kernel.gpu_time is not None)


def bounds_section(trace: Trace, bounds: RunBounds, cells: int) -> list[str]:
    """Return the lines about the limiters; none where no kernel had several probes, or one that shows its limiter."""
    if not any(kernel.named_probes or has_limiter_counts(kernel) for kernel in trace.kernels):
        return []
    unused_names = {probe.probe for probe in unused_probes(trace)}  # the head of the report names them
    lines = [line for bound in bounds.kernels for line in _bound_lines(bound, cells, unused_names)]
    sources = dict.fromkeys(bound.limiter.source for bound in bounds.kernels if bound.limiter is not None)
    lines += [f"limits: {source}" for source in sources if source]
    if bounds.kernels and not bounds.share_of:
        lines.append(f"no shares: {_truncated_share_reason(trace) or _no_shares_reason(trace)}")
    elif bounds.share_of == GPU_TIME:
        graphs = " and graph replays" if trace.graph_ns else ""
        lines.append(f"shares are relative to the GPU time of all timed kernels{graphs}")
    elif bounds.share_of:
        model = " (modeled)" if trace.state.simulated else ""
        lines.append(
            f"shares are relative to the cycles of all launches{model}, estimated from probed launches; only kernels"
            " with results are listed"
        )
    return [*lines, *([f"and {units.counted(bounds.unread, 'kernel')} more"] if bounds.unread else [])]


def _truncated_share_reason(trace: Trace) -> str:
    """Name the kernels whose launch cycles are missing since a result is truncated; "" for none."""
    truncated = trace.truncated_results
    names = [
        f"#{kernel.index} {printable(kernel.demangled)}"
        for kernel in trace.kernels
        if _newest_rows(kernel) & truncated.keys()
    ]
    if not names:
        return ""
    others_text = f" and of {units.counted(len(names) - 1, 'other kernel')}" if len(names) > 1 else ""
    return f"the newest result of {shorten(names[0], _TRUNCATED_NAME_CELLS)}{others_text} is truncated"


def _newest_rows(kernel: Kernel) -> set[int]:
    return {probed_kernel.result_rows[-1] for probed_kernel in kernel.by_probe() if probed_kernel.result_rows}


def _no_shares_reason(trace: Trace) -> str:
    """Name the option that measures times: a simulated GPU has none, and elsewhere one option disables them."""
    if trace.state.simulated:
        return "the simulated GPU has no times; run with a probe that counts launch cycles"
    has_no_times = trace.run_info is not None and trace.run_info.options.get("times") is False
    return f"run with a probe that counts launch cycles{', or remove --no-times' if has_no_times else ''}"


def _bound_lines(bound: KernelBound, cells: int, unused_names: Collection[str]) -> Iterator[str]:
    kernel = bound.kernel
    share = units.NOT_MEASURED if bound.share is None else f"{bound.share:.0%}"
    head = f"{share:>4}  #{kernel.index} "
    tail = f"  {units.counted(kernel.launches, 'launch')}"
    yield head + shorten(printable(kernel.demangled), cells - len(head) - len(tail)) + tail
    if bound.limiter is not None:
        texts = (text for text in limiter_texts(bound.limiter) if text != bound.limiter.source)
        for place, words in enumerate(texts):
            yield from hang_line(("      limited by: " if not place else "        ") + words, cells)
    if not kernel.result_rows:
        yield from hang_line(f"      no result: {unprobed_reason(kernel)}", cells)
    for finding in (
        kernel_finding.finding
        for kernel_finding in sorted(bound.findings, key=lambda kernel_finding: kernel_finding.order)
    ):
        if not finding.stands_out and finding.values and not any(finding.numbers.values()):
            continue  # nothing of the kind was executed
        mark = "!" if finding.stands_out else " "
        yield from hang_line(f"    {mark} {finding.label}: {finding_text(kernel, finding)}", cells)
    for words in unmeasured_texts(probe for probe in unmeasured_probes(kernel) if probe.probe not in unused_names):
        yield from hang_line(f"      {units.NOT_MEASURED} {words}", cells)


def unmeasured_lines(trace: Trace, cells: int) -> list[str]:
    """Return all that was not measured, with the reasons: probes, kernels, launches, and kernels without a match."""
    unused = unused_probes(trace)
    names = {probe.probe for probe in unused}
    lines = list(unmeasured_texts(unused))
    for kernel in trace.kernels:
        missing_probes = (probe for probe in unmeasured_probes(kernel) if probe.probe not in names)
        lines += [f"#{kernel.index} {printable(kernel.demangled)}: {text}" for text in unmeasured_texts(missing_probes)]
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

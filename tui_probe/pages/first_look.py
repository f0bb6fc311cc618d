"""First section of a report: where a run loses most, what to change there, and which lines these are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from tui_probe.draw.shell import command_lines, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import hang_line
from tui_probe.draw.table import safe
from tui_probe.pages.findings_page import all_questions
from tui_probe.probekit.registry import probe_named
from tui_probe.probekit.timelines.findings import IDLE_SMS_KEY
from tui_probe.verdicts.findings import finding_text
from tui_probe.verdicts.static_findings import GRID_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.probekit.finding import Finding
    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.verdicts.kernel_bounds import KernelBound

TITLE: Final = "Where to look first"
MAX_LOSSES: Final = 8
_MIN_FLAGGED_SHARE: Final = 0.1
_NAME_CELLS: Final = 32


@dataclass(frozen=True, slots=True)
class Loss:
    """A finding of a kernel that costs time, or that is about a line; ``share`` is that of the kernel in the run."""

    kernel: Kernel
    share: float | None
    finding: Finding

    @property
    def order(self) -> tuple[float, bool, float]:
        """Sort key: the part of the run's GPU time that the finding may be about, the largest first.

        That is its share of the kernel times the kernel's of the run. Where no kernel has a share all count the same.
        A flagged finding of no known size counts as the smallest that most probes flag.
        """
        share = 1.0 if self.share is None else self.share
        flagged = self.finding.stands_out
        part = self.finding.gain.share if self.finding.gain else _MIN_FLAGGED_SHARE if flagged else 0.0
        return -share * part, not flagged, -share


def ranked_losses(bounds: Sequence[KernelBound]) -> list[Loss]:
    """All losses of the kernels, the largest first."""
    losses = (Loss(bound.kernel, bound.share, finding) for bound in bounds for finding in _losses_of(bound))
    return sorted(losses, key=lambda loss: loss.order)


def _losses_of(bound: KernelBound) -> Iterator[Finding]:
    """The findings of a kernel, each loss once: one about a line stands for those about the kernel as a whole."""
    notable = [(probe, finding) for probe, finding in bound.findings if finding.stands_out or finding.line]
    located = {probe for probe, finding in notable if finding.line}
    probes = filter(None, map(probe_named, located))
    answered = {probe.question.key for probe in probes if probe.question is not None}
    by_grid = any(finding.key == GRID_KEY for _, finding in notable)
    for probe, finding in notable:
        if by_grid and finding.key == IDLE_SMS_KEY:
            continue
        if finding.line or (probe not in located and finding.asks not in answered):
            yield finding


def first_look(trace: Trace, bounds: Sequence[KernelBound], cells: int) -> list[str]:
    """The few losses that matter most, and what to change; none where nothing stands out and no probe names lines."""
    ranked = ranked_losses(bounds)
    lines = list(chain.from_iterable(_loss_lines(loss, cells) for loss in ranked[:MAX_LOSSES]))
    if any(loss.finding.line for loss in ranked):
        command = f"tui-probe show lines {shell_word(trace.directory)}:KERNEL"
        lines += command_lines("all lines of a kernel:", command, cells)
    return lines


def _loss_lines(loss: Loss, cells: int) -> Iterator[str]:
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

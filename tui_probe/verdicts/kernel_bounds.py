"""Kernels by their share of a run, with the limiter and findings of each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import hang_line
from tui_probe.draw.table import safe
from tui_probe.verdicts.findings import finding_text
from tui_probe.verdicts.kernel_findings import key_findings
from tui_probe.verdicts.limiter import has_limiter_counts, kernel_limiter
from tui_probe.verdicts.limiter_text import limiter_texts
from tui_probe.verdicts.run_findings import GPU_TIME, ranked_kernels
from tui_probe.verdicts.unmeasured import unmeasured_probes, unmeasured_texts, unused_probes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.verdicts.kernel_findings import KernelFinding
    from tui_probe.verdicts.limiter_text import KernelLimiter

_MAX_KERNELS: Final = 20


@dataclass(frozen=True, slots=True)
class KernelBound:
    """One kernel: its part of all launches together, None where that is not known, and what each probe says of it."""

    kernel: Kernel
    share: float | None
    findings: tuple[KernelFinding, ...]
    """Findings of each probe: the flagged ones, else the first."""
    limited: KernelLimiter | None = None
    """The unit that limits it; None where nothing was counted that tells."""

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {
            "kernel": self.kernel.index,
            "share": self.share,
            "limited_by": None if self.limited is None else self.limited.record(),
            "findings": [{"probe": of_probe.probe or None, **of_probe.finding.record()} for of_probe in self.findings],
            "not_measured_by": [probe.record() for probe in unmeasured_probes(self.kernel)],
        }


@dataclass(frozen=True, slots=True)
class RunBounds:
    """The kernels of a run, the largest share first. ``of`` is what the shares are of, "" where there are none.

    ``unread`` kernels have results that were not read.
    """

    of: str
    kernels: list[KernelBound]
    unread: int = 0


def kernel_bounds(trace: Trace, seconds: float | None = None) -> RunBounds:
    """The kernels that were timed, else those with results, and those whose grid or registers stand out.

    Without times shares are of the cycles that a probe counted. Reading ends after that many ``seconds``.
    """
    latest = None if seconds is None else time.monotonic() + seconds
    ranked = ranked_kernels(trace, latest)
    bounds = [
        KernelBound(kernel, share, key_findings(trace, kernel, share), kernel_limiter(kernel))
        for kernel, share in islice(ranked.kernels, _MAX_KERNELS)
        if latest is None or time.monotonic() < latest
    ]
    return RunBounds(ranked.of, bounds, len(ranked.kernels) - len(bounds))


def bounds_section(trace: Trace, run: RunBounds, cells: int) -> list[str]:
    """The section of the report; none where no kernel had several probes, or one that tells what limits it."""
    if not any(kernel.named_probes or has_limiter_counts(kernel) for kernel in trace.kernels):
        return []
    unused = {probe.probe for probe in unused_probes(trace)}  # the head of the report names them
    lines = [line for bound in run.kernels for line in _bound_lines(bound, cells, unused)]
    sources = dict.fromkeys(bound.limited.source for bound in run.kernels if bound.limited is not None)
    lines += [f"limits: {source}" for source in sources if source]
    if run.kernels and not run.of:
        lines.append(f"no shares: {_no_shares_reason(trace)}")
    elif run.of == GPU_TIME:
        graphs = " and graph replays" if trace.graph_ns else ""
        lines.append(f"shares: of the GPU time of all timed kernels{graphs}")
    elif run.of:
        model = " (modeled)" if trace.state.simulated else ""
        lines.append(
            f"shares: of the cycles of all launches{model}, estimated from probed launches; kernels with results only"
        )
    return [*lines, *([f"and {units.counted(run.unread, 'kernel')} more"] if run.unread else [])]


def _no_shares_reason(trace: Trace) -> str:
    """Name the option that measures times: a simulated GPU has none, and elsewhere one option disables them."""
    if trace.state.simulated:
        return "the simulated GPU has no times; run with a probe that counts launch cycles"
    untimed = trace.run_info is not None and trace.run_info.options.get("times") is False
    return f"run with a probe that counts launch cycles{', or without --no-times' if untimed else ''}"


def _bound_lines(bound: KernelBound, cells: int, unused: Collection[str]) -> Iterator[str]:
    kernel = bound.kernel
    share = units.NOT_MEASURED if bound.share is None else f"{bound.share:.0%}"
    head = f"{share:>4}  #{kernel.index} "
    tail = f"  {units.counted(kernel.launches, 'launch')}"
    yield head + shorten(safe(kernel.demangled), cells - len(head) - len(tail)) + tail
    if bound.limited is not None:
        texts = (words for words in limiter_texts(bound.limited) if words != bound.limited.source)
        for place, words in enumerate(texts):
            yield from hang_line(("      limited by: " if not place else "        ") + words, cells)
    if not kernel.result_rows:
        yield from hang_line(f"      no result: {safe(kernel.reason or kernel.status)}", cells)
    for finding in (of_probe.finding for of_probe in bound.findings):
        if not finding.stands_out and finding.values and not any(finding.numbers.values()):
            continue  # nothing of the kind was executed
        mark = "!" if finding.stands_out else " "
        yield from hang_line(f"    {mark} {finding.label}: {finding_text(kernel, finding)}", cells)
    for words in unmeasured_texts(probe for probe in unmeasured_probes(kernel) if probe.probe not in unused):
        yield from hang_line(f"      {units.NOT_MEASURED} {words}", cells)

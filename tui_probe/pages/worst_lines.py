"""The lines that stand out in all kernels of a trace: where to look first, at the end of the report of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from tui_probe.draw.hanging import hanging
from tui_probe.draw.shell import command_lines, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import safe
from tui_probe.pages.findings.brief import LARGEST, result_bytes, words_of
from tui_probe.pages.findings.found import find
from tui_probe.pages.time_columns import by_share
from tui_probe.probekit import probe_results
from tui_probe.probekit.kind import Source
from tui_probe.probekit.registry import names_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.finding import Finding
    from tui_probe.trace.model import Kernel, Trace

READ: Final = 20
"""Results that are read at most: the newest of each kernel and probe."""
SHOWN: Final = 8
_NAME_CELLS: Final = 32


@dataclass(frozen=True, slots=True)
class _Worst:
    """What was found of a line of a kernel."""

    kernel: Kernel
    finding: Finding

    @property
    def order(self) -> tuple[bool, float]:
        """What stands out comes first, and the more GPU time its kernel takes."""
        return not self.finding.stands_out, -(self.kernel.time_share or 0.0)


def worst_lines(trace: Trace, cells: int, seconds: float | None = None) -> list[str]:
    """The few that matter most; none where no probe tells of lines. Reading ends after so many ``seconds``."""
    ranked = sorted(_read(trace, seconds), key=lambda worst: worst.order)
    lines = [part for worst in ranked[:SHOWN] for part in hanging(_line(worst), cells)]
    if lines:
        command = f"tui-probe show lines {shell_word(trace.directory)}:KERNEL"
        lines += command_lines("all lines of a kernel:", command, cells)
    return lines


def _read(trace: Trace, seconds: float | None) -> Iterator[_Worst]:
    """Those of the kernels with most GPU time; a result that cannot be read is told where the results are."""
    latest = None if seconds is None else time.monotonic() + seconds
    for kernel in islice(_telling(trace), READ):
        if latest is not None and time.monotonic() > latest:
            return
        source = Source(trace, kernel)
        found = find(source) if result_bytes(source) <= LARGEST else None
        if found is not None:
            yield from (_Worst(kernel, found.of_blocks(finding)) for finding in found.findings if finding.line)


def _telling(trace: Trace) -> Iterator[Kernel]:
    """Kernels with results of probes that tell of lines, once for each probe; those with most GPU time first."""
    telling = names_of(lambda probe: probe.lines)
    kernels = chain.from_iterable(kernel.by_probe() for kernel in by_share(trace.kernels))
    return (one for one in kernels if one.result_rows and probe_results.probe_of(one) in telling)


def _line(worst: _Worst) -> str:
    kernel, finding = worst.kernel, worst.finding
    mark = "!" if finding.stands_out else " "
    share = "" if kernel.time_share is None else f" {kernel.time_share:>5.1%}"
    name = shorten(safe(kernel.demangled), _NAME_CELLS)
    return f"{mark}{share} #{kernel.index} {name}  {finding.label}: {words_of(kernel, finding)}"

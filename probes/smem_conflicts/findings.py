"""The access with most bank conflicts, and all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, Gain, place, share

from .analysis import of_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import BankConflicts

_MUCH: Final = 0.1
"""The part of all passes from which on what conflicts take stands out."""


def findings(of: ProbeResult, found: BankConflicts) -> Iterator[Finding]:
    """All accesses together."""
    del of
    yield _conflicts(found, "bank conflicts")


def findings_by_line(of: ProbeResult, counted: CountsByLine[BankConflicts]) -> Iterator[Finding]:
    """The worst line, then all."""
    del of
    found = [(line, of_line(line)) for line in counted.lines]
    passes = sum(each.passes for _, each in found)
    worst = max(found, key=lambda pair: pair[1].conflicts, default=None)
    if worst is not None and worst[1].conflicts:
        line, each = worst
        words = f"{place(line.line, line.source, line.opcode)}, {each.degree or 0:.1f} times the passes needed"
        words += f", {share(each.conflicts, passes)} of all passes lost"
        values = {"degree": each.degree, "conflicts": each.conflicts}
        much = each.conflicts > _MUCH * passes
        yield Finding("worst_access", "worst access", words, "lines", line.line, much, values=values,
                      gain=Gain(each.conflicts, passes, "cycles"))  # fmt: skip
    yield _conflicts(counted.whole, "")


def _conflicts(found: BankConflicts, asks: str) -> Finding:
    words = "no access to shared memory was executed"
    if found.accesses:
        words = f"{units.counted(found.accesses, 'access')}, {found.passes_per_access or 0:.2f} passes each, "
        words += f"{share(found.conflicts, found.passes)} of them conflicts" if found.conflicts else "no conflicts"
    much = found.conflicts > _MUCH * found.passes
    values = {"accesses": found.accesses, "passes": found.passes, "conflicts": found.conflicts}
    asks = asks if found.conflicts else ""
    gain = Gain(found.conflicts, found.passes, "cycles") if found.conflicts else None
    return Finding("shared_memory", "shared memory", words, stands_out=much, asks=asks, values=values, gain=gain)

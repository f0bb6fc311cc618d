"""The largest classes, and arithmetic that is costly; by line also where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place, share
from tui_probe.ptx.instruction_classes import CLASSES

from .analysis import FLOATING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import InstructionMix

_NAMED: Final = 4


def findings(of: ProbeResult, found: InstructionMix) -> Iterator[Finding]:
    """Classes and arithmetic."""
    del of
    yield from _mix(found)


def findings_by_line(of: ProbeResult, found: CountsByLine[InstructionMix]) -> Iterator[Finding]:
    """The same, then the line that is executed most."""
    del of
    whole = found.whole
    yield from _mix(whole)
    kinds = ("fp64",) if whole.executed["fp64"] else CLASSES
    line = max(found.lines, key=lambda each: each.total(*kinds), default=None)
    if line is not None and line.total(*kinds):
        part = share(line.total(*kinds), sum(whole.executed[kind] for kind in kinds))
        words = (
            f"{place(line.line, line.source, line.opcode)}, {part} of all {'fp64 ' if len(kinds) == 1 else ''}executed"
        )
        values = {"executed": line.total(*kinds)}
        yield Finding("most_executed", "executed most", words, "lines", line.line, values=values)


def _mix(found: InstructionMix) -> Iterator[Finding]:
    largest = sorted(found.executed.items(), key=lambda pair: -pair[1])[:_NAMED]
    parts = ", ".join(f"{name} {share(number, found.total)}" for name, number in largest if number)
    words = f"{units.count(found.total)} of warps: {parts}"
    yield Finding("mix", "instructions", words, values={"total": found.total, **found.executed})
    arithmetic = [f"{name} {part:.0%}" for name in FLOATING if (part := found.share(name))]
    if arithmetic:
        doubles = found.share("fp64") or 0.0
        asks = "tensor cores" if found.executed["tensor"] and not doubles else ""
        values = {f"{name}_share": found.share(name) for name in (*FLOATING, "tensor")}
        words = f"{', '.join(arithmetic)} of the floating-point arithmetic"
        yield Finding("arithmetic", "arithmetic", words, stands_out=doubles > 0, asks=asks, values=values)

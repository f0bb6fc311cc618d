"""The basic block that takes most time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import ProgramProgress


def findings(of: ProbeResult, found: ProgramProgress) -> Iterator[Finding]:
    """The hottest block, and the time that is not known."""
    del of
    if found.blocks:
        first = found.blocks[0]
        words = f"from {place(first.line, first.source)} on, {share(first.cycles, found.cycles)} of all warps' cycles, "
        words += f"{units.count(round(first.cycles_per_visit or 0))} cycles per visit"
        values = {"share": first.cycles / found.cycles if found.cycles else None, "visits": first.visits}
        yield Finding("hottest", "most time", words, "lines", first.line, values=values)
    if found.unknown:
        words = f"{share(found.unknown, found.cycles)} of the time: warps entered more blocks than were kept"
        yield Finding("unknown", "not known", words, "lines", values={"unknown": found.unknown})

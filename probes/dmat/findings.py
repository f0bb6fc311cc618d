"""The access that moves most for nothing, and all accesses; of a large result only how many there were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, Gain, place

from .table import SECTOR, AccessCount
from .waste import worst_access

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.probe_results import ProbeResult

    from .table import AccessTable, LineAccesses

_MUCH: Final = 0.1
"""The part of all sectors from which on what is wasted stands out."""


def findings(of: ProbeResult, found: AccessTable | AccessCount) -> Iterator[Finding]:
    """Of the table, or of the count."""
    del of
    if isinstance(found, AccessCount):
        yield _number(found, "")
        return
    yield from _worst_access(found)
    yield _all_accesses(found)


def findings_of_compact(of: ProbeResult, found: AccessTable | AccessCount) -> Iterator[Finding]:
    """How many there were: which are not coalesced another probe tells."""
    del of
    if isinstance(found, AccessCount):
        yield _number(found, "coalescing")


def _number(found: AccessCount, asks: str) -> Finding:
    words = f"{units.count(found.accesses)}, at most {units.count(found.capacity)} kept per thread"
    return Finding("accesses", "accesses", words, "dmat", asks=asks, values={"accesses": found.accesses})


def _worst_access(found: AccessTable) -> Iterator[Finding]:
    found_worst = worst_access(found.rows)
    sectors = found.sectors
    if found_worst is None:
        if sectors and all(row.used is not None for row in found.rows):
            yield Finding(
                "coalesced", "coalesced", "all loads and stores use the sectors that they move in full", "lines"
            )
        return
    worst, wasted = found_worst
    needed = ((worst.ideal or 0) / worst.requests) if worst.requests else 0.0
    words = f"{_where(worst)}, {worst.sectors_per_request or 0:.1f} sectors per request"
    words += f", {units.tenths(needed)} would do"
    values = {
        "sectors_per_request": worst.sectors_per_request,
        "used": worst.used,
        "sectors_needed": needed,
        "wasted_share": wasted / sectors,
    }
    gain = Gain(SECTOR * wasted, SECTOR * sectors, "B")
    much = wasted > _MUCH * sectors
    yield Finding("worst_access", "worst access", words, "lines", worst.line, much, values=values, gain=gain)


def _where(row: LineAccesses) -> str:
    return place(row.line, row.code.source if row.code else None, row.code.opcode if row.code else None)


def _all_accesses(found: AccessTable) -> Finding:
    requests, sectors = found.requests, found.sectors
    words = units.count(found.accesses) if found.accesses is not None else f"{units.count(found.kept)} kept"
    words += f" in {units.counted(requests, 'request')}"
    if requests:
        words += f", {sectors / requests:.1f} sectors per request"
    if found.kept != found.accesses:
        words += f"; kept: the first {units.count(found.capacity)} of each thread, {units.count(found.kept)} in all"
    values = {"accesses": found.accesses, "kept": found.kept, "requests": requests, "sectors": sectors}
    return Finding("accesses", "accesses", words, "dmat", values=values)

"""The access that touches most sectors beyond what its lanes need, then loads and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.counts import ratio
from tui_probe.draw import units
from tui_probe.draw.units import tenths
from tui_probe.probekit.finding import Finding, Gain, place

from .analysis import requests_and_sectors, sectors_per_request
from .waste import worst_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import MemorySectors
    from .waste import Waste

SECTOR: Final = 32
_COALESCED: Final = 4
"""Sectors of a request whose 32 lanes take 4 bytes each, side by side: more may be waste."""
_MUCH: Final = 0.1
"""The part of all sectors from which on what is wasted stands out."""


def findings(of: ProbeResult, found: MemorySectors) -> Iterator[Finding]:
    """Loads and stores."""
    del of
    yield from _sectors(found, "coalescing")


def findings_by_line(of: ProbeResult, found: CountsByLine[MemorySectors]) -> Iterator[Finding]:
    """The worst line, then all."""
    worst = worst_line(found.lines, of.kernel.folder)
    if worst is not None:
        yield _worst_line(worst, sum(requests_and_sectors(each)[1] for each in found.lines))
    yield from _sectors(found.whole, "")


def _worst_line(worst: Waste, sectors: int) -> Finding:
    line, wasted, touched = worst.line, worst.wasted or 0, sectors_per_request(worst.line)
    needed = ratio(worst.ideal or 0, worst.requests) or 0.0
    where = place(line.line, line.source, line.opcode)
    words = f"{where}, {touched or 0:.1f} sectors per request, {tenths(needed)} would do"
    values = {"sectors_per_request": touched, "sectors_needed": needed, "wasted_share": wasted / sectors}
    much = wasted > _MUCH * sectors
    gain = Gain(SECTOR * wasted, SECTOR * sectors, "B")
    return Finding("worst_access", "worst access", words, "lines", line.line, much, values=values, gain=gain)


def _sectors(found: MemorySectors, asks: str) -> Iterator[Finding]:
    for name, requests, sectors, ideal in (
        ("load", found.load_requests, found.load_sectors, found.load_ideal),
        ("store", found.store_requests, found.store_sectors, found.store_ideal),
    ):
        mean = ratio(sectors, requests)
        if mean is None:
            continue
        words = f"{units.counted(requests, 'request')}, {mean:.1f} sectors each"
        wasted = None if ideal is None else sectors - ideal
        words += "" if ideal is None else f", {tenths(ideal / requests)} would do" if wasted else ", as few as would do"
        more = asks if (mean > _COALESCED if wasted is None else wasted > 0) else ""
        values = {"requests": requests, "sectors": sectors, "sectors_per_request": mean, "ideal_sectors": ideal}
        gain = Gain(SECTOR * wasted, SECTOR * sectors, "B") if wasted and asks else None
        much = bool(asks) and wasted is not None and wasted > _MUCH * sectors
        yield Finding(f"{name}s", f"{name}s", words, "sectors", stands_out=much, asks=more, values=values, gain=gain)

"""The access that touches most sectors beyond what its lanes need, then loads and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis.counts import ratio
from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place

from .analysis import requests_and_sectors, sectors_per_request
from .waste import worst_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import CountsByLine, LineSums
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import MemorySectors

_COALESCED: Final = 4
"""Sectors of a request whose 32 lanes take 4 bytes each, side by side."""
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
        yield _worst_line(*worst, sum(requests_and_sectors(each)[1] for each in found.lines))
    yield from _sectors(found.whole, "")


def _worst_line(line: LineSums, wasted: int, needed: int, sectors: int) -> Finding:
    touched = sectors_per_request(line)
    words = f"{place(line.line, line.source, line.opcode)}, {touched or 0:.1f} sectors per request, {needed} would do"
    values = {"sectors_per_request": touched, "sectors_needed": needed, "wasted_share": wasted / sectors}
    return Finding("worst_access", "worst access", words, "lines", line.line, wasted > _MUCH * sectors, values=values)


def _sectors(found: MemorySectors, asks: str) -> Iterator[Finding]:
    for name, requests, sectors in (
        ("load", found.load_requests, found.load_sectors),
        ("store", found.store_requests, found.store_sectors),
    ):
        mean = ratio(sectors, requests)
        if mean is None:
            continue
        words = f"{units.counted(requests, 'request')}, {mean:.1f} sectors each (4: 4 bytes per lane, side by side)"
        more = asks if mean > _COALESCED else ""
        values = {"requests": requests, "sectors": sectors, "sectors_per_request": mean}
        yield Finding(f"{name}s", f"{name}s", words, "sectors", asks=more, values=values)

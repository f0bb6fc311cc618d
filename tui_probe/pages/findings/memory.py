"""What probes of global and shared memory found: how much was moved, and which access moves more than it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis import dmat, gmem_bytes, gmem_sectors, smem_conflicts
from tui_probe.analysis.accesses import read_accesses
from tui_probe.analysis.counts import ratio
from tui_probe.analysis.waste import worst_access, worst_line
from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place, share
from tui_probe.trace.allocations import LaunchMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import LineSums
    from tui_probe.analysis.dmat import AccessTable, LineAccesses
    from tui_probe.analysis.gmem_bytes import MemoryBytes
    from tui_probe.analysis.gmem_sectors import MemorySectors
    from tui_probe.analysis.smem_conflicts import BankConflicts
    from tui_probe.probekit.probe_results import ProbeResult

_COALESCED: Final = 4
"""Sectors of a request whose 32 lanes take 4 bytes each, side by side."""
_MUCH: Final = 0.1
"""The part of all sectors, or of all passes, from which on what is lost stands out."""


def of_dmat(of: ProbeResult) -> Iterator[Finding]:
    """The access that moves most for nothing, and all accesses; of a large result only how many there were."""
    compact = of.probe == "dmat_compact"
    accesses = read_accesses(of.result, compact=compact, memory=LaunchMemory(), simulated=of.simulated)
    found = dmat.summary(accesses, of.kernel.folder)
    if isinstance(found, dmat.AccessCount):
        words = f"{units.count(found.accesses)}, at most {units.count(found.capacity)} of a thread kept"
        asks = "gmem_sectors_by_line" if compact else ""
        yield Finding("accesses", "accesses", words, "dmat", asks=asks, values={"accesses": found.accesses})
        return
    yield from _worst_access(found)
    yield from _all_accesses(found, accesses.capacity)


def _worst_access(found: AccessTable) -> Iterator[Finding]:
    found_worst = worst_access(found.rows)
    sectors = sum(row.sectors for row in found.rows)
    if found_worst is None:
        if sectors and all(row.used is not None for row in found.rows):
            yield Finding(
                "coalesced", "coalesced", "no load or store moves sectors that it does not use in full", "lines"
            )
        return
    worst, wasted = found_worst
    words = f"{_where(worst)}, {worst.sectors_per_request or 0:.1f} sectors a request, {worst.used or 0:.0%} used"
    values = {
        "sectors_per_request": worst.sectors_per_request,
        "used": worst.used,
        "wasted_share": wasted / sectors,
    }
    yield Finding("worst_access", "worst access", words, "lines", worst.line, wasted > _MUCH * sectors, values=values)


def _where(row: LineAccesses) -> str:
    return place(row.line, row.code.source if row.code else None, row.code.opcode if row.code else None)


def _all_accesses(found: AccessTable, capacity: int) -> Iterator[Finding]:
    requests, sectors = sum(row.requests for row in found.rows), sum(row.sectors for row in found.rows)
    words = units.count(found.accesses) if found.accesses is not None else f"{units.count(found.kept)} kept"
    words += f" in {units.counted(requests, 'request')}"
    if requests:
        words += f", {sectors / requests:.1f} sectors a request"
    if found.kept != found.accesses:
        words += f"; kept: the first {units.count(capacity)} of each thread, {units.count(found.kept)} in all"
    values = {"accesses": found.accesses, "kept": found.kept, "requests": requests, "sectors": sectors}
    yield Finding("accesses", "accesses", words, "dmat", values=values)


def of_sectors(of: ProbeResult) -> Iterator[Finding]:
    """The access that touches most sectors beyond what its lanes need, then loads and stores."""
    if of.probe == "gmem_sectors":
        yield from _sectors(gmem_sectors.analyse(of.result), "gmem_sectors_by_line")
        return
    counted = gmem_sectors.analyse_lines(of.result, _sites(of), of.kernel.folder)
    found = worst_line(counted.lines, of.kernel.folder)
    if found is not None:
        yield _worst_line(*found, sum(gmem_sectors.requests_and_sectors(each)[1] for each in counted.lines))
    whole: MemorySectors = counted.whole  # type: ignore[assignment]
    yield from _sectors(whole, "")


def _worst_line(line: LineSums, wasted: int, needed: int, sectors: int) -> Finding:
    touched = gmem_sectors.sectors_per_request(line)
    words = f"{place(line.line, line.source, line.opcode)}, {touched or 0:.1f} sectors a request, {needed} would do"
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
        words = f"{units.counted(requests, 'request')}, {mean:.1f} sectors each (4: 4 bytes a lane, side by side)"
        more = asks if mean > _COALESCED else ""
        values = {"requests": requests, "sectors": sectors, "sectors_per_request": mean}
        yield Finding(f"{name}s", f"{name}s", words, "sectors", asks=more, values=values)


def of_bytes(of: ProbeResult) -> Iterator[Finding]:
    """Bytes asked for, how fast where the original was timed, and the line that moves most."""
    if of.probe == "gmem_bytes":
        yield from _bytes(of, gmem_bytes.analyse(of.result))
        return
    counted = gmem_bytes.analyse_lines(of.result, _sites(of), of.kernel.folder)
    whole: MemoryBytes = counted.whole  # type: ignore[assignment]
    yield from _bytes(of, whole)
    if counted.worst is not None:
        line, moved = counted.worst
        total = (whole.read or 0) + (whole.written or 0)
        words = f"{place(line.line, line.source, line.opcode)}, {units.size(moved)}, {share(moved, total)} of all"
        values = {"bytes": int(moved)}
        yield Finding("most_bytes", "most bytes", words, "lines", line.line, values=values)


def _bytes(of: ProbeResult, found: MemoryBytes) -> Iterator[Finding]:
    read, written = found.read, found.written
    words = f"{units.size(read)} read, {units.size(written)} written, as instructions ask for"
    speed = None
    if read is not None and written is not None and of.timed_ms:
        speed = (read + written) / (of.timed_ms * 1e-3)
        words += f": {units.size(speed)}/s in the original's {units.duration(of.timed_ms * 1e-3)}"
    elif read is None or written is None:
        words += "; copies by tensor map name no size"
    values = {"read": read, "written": written, "bytes_per_second": speed}
    yield Finding("bytes", "bytes", words, "memory", values=values)


def of_conflicts(of: ProbeResult) -> Iterator[Finding]:
    """The access with most bank conflicts, and all."""
    if of.probe == "smem_conflicts":
        yield _conflicts(smem_conflicts.analyse(of.result), "smem_conflicts_by_line")
        return
    counted = smem_conflicts.analyse_lines(of.result, _sites(of), of.kernel.folder)
    found = [(line, smem_conflicts.of_line(line)) for line in counted.lines]
    passes = sum(each.passes for _, each in found)
    worst = max(found, key=lambda pair: pair[1].conflicts, default=None)
    if worst is not None and worst[1].conflicts:
        line, each = worst
        words = f"{place(line.line, line.source, line.opcode)}, {each.degree or 0:.1f} times the passes needed"
        words += f", {share(each.conflicts, passes)} of all passes lost"
        values = {"degree": each.degree, "conflicts": each.conflicts}
        much = each.conflicts > _MUCH * passes
        yield Finding("worst_access", "worst access", words, "lines", line.line, much, values=values)
    whole: BankConflicts = counted.whole  # type: ignore[assignment]
    yield _conflicts(whole, "")


def _conflicts(found: BankConflicts, asks: str) -> Finding:
    words = "no access to shared memory was executed"
    if found.accesses:
        words = f"{units.counted(found.accesses, 'access')}, {found.passes_per_access or 0:.2f} passes each, "
        words += f"{share(found.conflicts, found.passes)} of them conflicts" if found.conflicts else "no conflicts"
    much = found.conflicts > _MUCH * found.passes
    values = {"accesses": found.accesses, "passes": found.passes, "conflicts": found.conflicts}
    asks = asks if found.conflicts else ""
    return Finding("shared_memory", "shared memory", words, stands_out=much, asks=asks, values=values)


def _sites(of: ProbeResult) -> tuple[int, ...]:
    return of.kernel.info.sites.get(0, ()) if of.kernel.info else ()

"""Bytes asked for, how fast where the original was timed, and the line that moves most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import CountsByLine
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import MemoryBytes


def findings(of: ProbeResult, found: MemoryBytes) -> Iterator[Finding]:
    """What was read and written."""
    read, written = found.read, found.written
    words = f"{units.size(read)} read, {units.size(written)} written, as instructions ask for"
    speed = None
    if read is not None and written is not None and of.timed_ms:
        speed = (read + written) / (of.timed_ms * 1e-3)
        words += f": {units.size(speed)}/s in the original's {units.duration(of.timed_ms * 1e-3)}"
    elif read is None or written is None:
        words += "; copies by tensor map state no size"
    values = {"read": read, "written": written, "bytes_per_second": speed}
    yield Finding("bytes", "bytes", words, "memory", values=values)


def findings_by_line(of: ProbeResult, found: CountsByLine[MemoryBytes]) -> Iterator[Finding]:
    """The same, then the line with most bytes."""
    yield from findings(of, found.whole)
    if found.worst is not None:
        line, moved = found.worst
        total = (found.whole.read or 0) + (found.whole.written or 0)
        words = f"{place(line.line, line.source, line.opcode)}, {units.size(moved)}, {share(moved, total)} of all"
        values = {"bytes": int(moved)}
        yield Finding("most_bytes", "most bytes", words, "lines", line.line, values=values)

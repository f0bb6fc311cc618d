"""What the probes of a kernel found, for places where there is room for a line of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.table import safe
from tui_probe.pages.findings.found import Found, find_all
from tui_probe.pages.limits import limited, tells_limit
from tui_probe.probekit import probe_results
from tui_probe.probekit.kind import Source
from tui_probe.trace.source_lines import SourceLines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.finding import Finding
    from tui_probe.trace.model import Kernel, Trace

LARGEST: Final = 32 << 20
"""Bytes of a result up to which it is read for a line in a table, unasked."""
STANDS_OUT: Final = "! "


def telling(trace: Trace, kernel: Kernel) -> tuple[tuple[str, Finding], ...]:
    """What each probe says of the newest result that it left: what stands out, else the first that it says."""
    found = find_all(Source(trace, kernel))
    return tuple((each.probe, finding) for each in found for finding in _best(each))


def _best(found: Found) -> list[Finding]:
    best = [finding for finding in found.findings if finding.stands_out] or list(found.findings[:1])
    return [found.of_blocks(finding) for finding in best]


def words_of(kernel: Kernel, finding: Finding) -> str:
    """What was found, and where in the source that is, unless the words say it."""
    source = SourceLines.of(kernel.folder).ptx_line(finding.line) if finding.line and kernel.folder else None
    name = f"{PurePath(source.file).name}:{source.line}" if source else ""
    return safe(finding.words + (f", {name}" if name and name not in finding.words else ""))


@dataclass(frozen=True, slots=True)
class Brief:
    """What the probes of a kernel ``found`` in the newest results, and that in one line."""

    words: str
    found: tuple[Found, ...] = ()


def brief(trace: Trace, kernel: Kernel) -> Brief:
    """What stands out comes first in the line, after a ``!``; or why there is nothing, where a result cannot be read.

    Reads the newest result of each probe, if it is not large.
    """
    for source in probe_results.of_each_probe(Source(trace, kernel)):
        size = result_bytes(source)
        if size > LARGEST:
            return Brief(f"{units.size(size)} were recorded: open the kernel to read them")
    found = find_all(Source(trace, kernel))
    best = sorted((each for one in found for each in _best(one)), key=lambda finding: not finding.stands_out)
    mark = STANDS_OUT if best and best[0].stands_out else ""
    problems = [safe(one.problem) for one in found if one.problem]
    words = [*_limit(kernel), *(words_of(kernel, each) for each in best), *problems]
    return Brief(mark + "; ".join(words), tuple(found))


def _limit(kernel: Kernel) -> Iterator[str]:
    """What limits it, where a probe was to tell that, and could."""
    limit = limited(kernel) if tells_limit(kernel) else None
    if limit is not None and limit.limit is not None:
        yield limit.short


def result_bytes(source: Source) -> int:
    """Bytes of the result of its launch, or of the newest of its kernel; 0 where there is none."""
    row = source.launch.result if source.launch is not None else source.kernel.newest_result
    path = None if row is None else source.trace.results.path(row)
    try:
        return 0 if path is None else path.stat().st_size
    except OSError:
        return 0

"""The lines of all kernels of a trace in one table, those first that have most of what their probe tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.known_sites import sites_of
from tui_probe.draw.hanging import hanging
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column, safe, table
from tui_probe.draw.units import NOT_MEASURED, counted, size
from tui_probe.draw.view import each_told, no_progress
from tui_probe.errors import TraceError
from tui_probe.pages.findings.brief import LARGEST, result_bytes
from tui_probe.probekit import probe_results
from tui_probe.probekit.kind import Source
from tui_probe.probekit.lines import Share
from tui_probe.probekit.measures import in_full, line_rows
from tui_probe.probekit.registry import names_of
from tui_probe.trace.offset import where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.lines import LineRow, LineRows, Lines, Value
    from tui_probe.trace.model import Kernel, Trace

SHOWN: Final = 40
"""Lines of the text; data has all."""


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A line of a kernel: its ``value`` of what its probe tells first, ``name``, and its share of all kernels'."""

    kernel: Kernel
    probe: str
    name: str
    row: LineRow
    value: float
    share: Share
    opcode: str | None
    is_first: bool
    """Whether that is what the probe ranks lines by; else the kernel has nothing of it."""

    @property
    def place(self) -> str:
        """``strided_store.cu:4``; ``–`` where no source is known."""
        source = self.row.source
        return NOT_MEASURED if source is None else f"{PurePath(source.file).name}:{source.line}"

    @property
    def beside(self) -> str:
        """The other figures of the line, in words."""
        others = {name: value for name, value in self.row.found.items() if name != self.name and value is not None}
        return ", ".join(f"{_shown(value)} {name}" for name, value in others.items())


def kernel_lines(trace: Trace, progress: Progress = no_progress) -> Iterator[KernelLine]:
    """All lines of which something was measured: what probes rank by, such as waste, before the rest, the largest share
    of all kernels first."""
    found = [line for kernel in each_told(trace.kernels, progress) for line in _of_kernel(trace, kernel)]
    wholes: dict[tuple[str, str], float] = {}
    for line in found:
        wholes[line.probe, line.name] = wholes.get((line.probe, line.name), 0.0) + line.value
    known = [_with_share(line, wholes) for line in found]
    return iter(sorted(known, key=lambda line: (not line.is_first, -line.share, line.kernel.index, line.row.line)))


def _with_share(line: KernelLine, wholes: Mapping[tuple[str, str], float]) -> KernelLine:
    whole = wholes[line.probe, line.name]
    share = Share(line.value / whole if whole else 0.0)
    return replace(line, share=share)


def _of_kernel(trace: Trace, kernel: Kernel) -> Iterator[KernelLine]:
    telling = names_of(lambda probe: probe.lines)
    for source in probe_results.of_each_probe(Source(trace, kernel)):
        probe = probe_results.probe_of(source.kernel) or ""
        if probe not in telling or not source.kernel.result_rows or result_bytes(source) > LARGEST:
            continue
        try:
            lines, found = line_rows(probe_results.read(source))
            opcodes = _opcodes(kernel.folder)
        except (TraceError, OSError):
            continue
        name = _ranking(lines, found)
        for row in found.rows:
            value = row.found.get(name)
            if isinstance(value, int | float) and row.line:
                opcode = opcodes.get(row.line)
                yield KernelLine(kernel, probe, name, row, float(value), Share(0), opcode, name == lines.main)


def _ranking(lines: Lines, found: LineRows) -> str:
    """What lines are ranked by: the first that can be added up and that some line has, so that each has a share."""
    by_name = sorted(lines.measures, key=lambda measure: measure.name != lines.main)
    sums = [measure.name for measure in by_name if measure.rule == "sum"]
    known = (name for name in sums if any(row.found.get(name) for row in found.rows))
    return next(known, lines.main)


def _opcodes(folder: Path | None) -> dict[int, str]:
    return {one.line: one.opcode for one in reversed(sites_of(folder).instructions())}


def _shown(value: Value) -> str:
    return safe(in_full(value))


LINE_COLUMNS: Final[tuple[Column[KernelLine], ...]] = (
    Column("kernel", lambda r: r.kernel.index, "#", lambda r: str(r.kernel.index)),
    Column("name", lambda r: r.kernel.name),
    Column("demangled", lambda r: r.kernel.demangled, "kernel", lambda r: r.kernel.demangled, False, 0, 12, shorten),
    Column("ptx_line", lambda r: r.row.line, "line", lambda r: where(r.row.line)),
    Column("probe", lambda r: r.probe),
    Column("measure", lambda r: r.name, "measure", lambda r: r.name, False),
    Column("value", lambda r: r.value, "value", lambda r: _shown(int(r.value) if r.value.is_integer() else r.value)),
    Column("share", lambda r: float(r.share), "of all", lambda r: r.share.text),
    Column("file", lambda r: r.row.source.file if r.row.source else None),
    Column("source_line", lambda r: r.row.source.line if r.row.source else None),
    Column("place", None, "source", lambda r: r.place, False, 1),
    Column("opcode", lambda r: r.opcode, "instruction", lambda r: r.opcode or "", False, 2, 12, shorten),
    Column("others", lambda r: dict(r.row.found), "beside that", lambda r: r.beside, False, 3, nested=True),
)
"""``share`` is of what all lines of all kernels have together, by the same probe. Without its measure a value would
mean nothing, so that column stays however narrow the table is."""


def all_lines(trace: Trace, cells: int, progress: Progress = no_progress) -> Iterator[str]:
    """The page as text."""
    rows = list(kernel_lines(trace, progress))
    if not rows:
        yield from hanging(nothing(), cells)
        return
    yield from table(LINE_COLUMNS, rows[:SHOWN], cells)
    if len(rows) > SHOWN:
        yield f"and {counted(len(rows) - SHOWN, 'line')} more (--format csv has all)"
    large = [kernel for kernel in trace.kernels if result_bytes(Source(trace, kernel)) > LARGEST]
    for kernel in large:
        words = f"#{kernel.index}: {size(result_bytes(Source(trace, kernel)))} are read for its own page alone"
        yield from hanging(words, cells)


def nothing() -> str:
    """What to do where no probe told of lines."""
    return f"No probe of this trace tells of single lines: run with -p {names_of(lambda probe: probe.lines)[0]}."

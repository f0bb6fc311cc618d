"""Page of the measured lines of all kernels of a trace, those with the largest share first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column, safe
from tui_probe.draw.table_content import PageTexts
from tui_probe.draw.units import NOT_MEASURED, size
from tui_probe.draw.view import no_progress, with_progress
from tui_probe.errors import TraceError
from tui_probe.pages.code.line_measures import line_rows
from tui_probe.pages.code.measure_column import full_text
from tui_probe.pages.table_page import TablePage
from tui_probe.probekit import probe_results
from tui_probe.probekit.lines import ShareValue, measure_named
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.recognised import analysis_name
from tui_probe.probekit.registry import probe_names_where
from tui_probe.records.probed_sites import probed_sites
from tui_probe.trace.kernel_files import short_position
from tui_probe.verdicts.findings import MAX_UNASKED_BYTES, result_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec, LineValue
    from tui_probe.trace.model import Kernel, Trace

MAX_LINES_SHOWN: Final = 40
"""Lines of the text; data has all."""
LINES_ABOUT: Final = (
    "Every line that a probe measured, in the newest result of each kernel. Lines are ranked by the first metric of"
    " their probe, wasteful lines first. The share is relative to all lines of all kernels with the same probe.",
    "Enter shows the line in the source or PTX of its kernel; q returns. Page 6 has the lines of one kernel.",
)


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A line of a kernel: its ``value`` of what its probe tells first, ``name``, and its share of all kernels'."""

    kernel: Kernel
    probe: str
    name: str
    row: LineRow
    value: float
    measures: tuple[LineMeasure, ...]
    share: ShareValue
    opcode: str | None
    is_first: bool
    """True if that is what the probe ranks lines by; else the kernel has nothing of it."""

    @property
    def place(self) -> str:
        """``strided_store.cu:4``; ``–`` where no source is known."""
        source = self.row.source
        return NOT_MEASURED if source is None else f"{PurePath(source.file).name}:{source.line}"

    @property
    def adjacent(self) -> str:
        """The other values of the line, in words."""
        others = {name: value for name, value in self.row.found.items() if name != self.name and value is not None}
        return ", ".join(f"{_value_text(value)} {self._heading(name)}" for name, value in others.items())

    @property
    def heading(self) -> str:
        """The heading of its value."""
        return self._heading(self.name)

    def _heading(self, name: str) -> str:
        return measure_named(self.measures, name).heading


def measured_lines(
    trace: Trace, progress: Progress = no_progress, damaged: list[str] | None = None
) -> Iterator[KernelLine]:
    """All lines with a measurement: what probes rank by, such as waste, before the rest, the largest
    share of all kernels first. Adds to ``damaged`` what cannot be read, in words.
    """
    unread = [] if damaged is None else damaged
    kernels = with_progress(trace.kernels, progress)
    lines = [line for kernel in kernels for line in _lines_of_kernel(trace, kernel, unread)]
    wholes: dict[tuple[str, str], float] = {}
    for line in lines:
        wholes[line.probe, line.name] = wholes.get((line.probe, line.name), 0.0) + line.value
    known = [_with_share(line, wholes) for line in lines]
    return iter(sorted(known, key=lambda line: (not line.is_first, -line.share, line.kernel.index, line.row.line)))


def _with_share(line: KernelLine, wholes: Mapping[tuple[str, str], float]) -> KernelLine:
    total = wholes[line.probe, line.name]
    share = ShareValue(line.value / total if total else 0.0)
    return replace(line, share=share)


def _lines_of_kernel(trace: Trace, kernel: Kernel, damaged: list[str]) -> Iterator[KernelLine]:
    telling = probe_names_where(lambda probe: probe.lines)
    for source in ViewSource(trace, kernel).by_probe():
        probe = analysis_name(source.kernel) or ""
        if probe not in telling or not source.kernel.result_rows or result_bytes(source) > MAX_UNASKED_BYTES:
            continue
        try:
            lines, rows = line_rows(probe_results.read_result(source))
            opcodes = _opcodes_by_line(kernel.folder)
        except (TraceError, OSError) as error:
            damaged.append(f"#{kernel.index}: {safe(str(error))}")
            continue
        name = _ranking_measure(lines, rows)
        for row in rows.rows:
            value = row.found.get(name)
            if isinstance(value, int | float) and row.line:
                opcode = opcodes.get(row.line)
                number = value if isinstance(value, ShareValue) else float(value)
                yield KernelLine(
                    kernel, probe, name, row, number, lines.measures, ShareValue(0), opcode, name == lines.main
                )


def _ranking_measure(lines: LineSpec, found: LineRows) -> str:
    """Return the measure that ranks lines: the first that is a sum and that some line has, so each has a share."""
    by_name = sorted(lines.measures, key=lambda measure: measure.name != lines.main)
    sums = [measure.name for measure in by_name if measure.rule == "sum"]
    known = (name for name in sums if any(row.found.get(name) for row in found.rows))
    return next(known, lines.main)


def _opcodes_by_line(folder: Path | None) -> dict[int, str]:
    return {site.line: site.opcode for site in reversed(probed_sites(folder).instructions())}


def _whole_if_integer(value: float) -> float:
    return int(value) if value.is_integer() and not isinstance(value, ShareValue) else value


def _value_text(value: LineValue) -> str:
    return safe(full_text(value))


ALL_LINES_COLUMNS: Final[tuple[Column[KernelLine], ...]] = (
    Column("kernel", lambda r: r.kernel.index, "#", lambda r: str(r.kernel.index)),
    Column("name", lambda r: r.kernel.name),
    Column("demangled", lambda r: r.kernel.demangled, "kernel", lambda r: r.kernel.demangled, False, 0, 12, shorten),
    Column("ptx_line", lambda r: r.row.line, "line", lambda r: short_position(r.row.line)),
    Column("probe", lambda r: r.probe),
    Column("measure", lambda r: r.name, "measure", lambda r: r.heading, False),
    Column("value", lambda r: float(r.value), "value", lambda r: _value_text(_whole_if_integer(r.value))),
    Column("share", lambda r: float(r.share), "of all", lambda r: r.share.text),
    Column("file", lambda r: r.row.source.file if r.row.source else None),
    Column("source_line", lambda r: r.row.source.line if r.row.source else None),
    Column("place", None, "source", lambda r: r.place, False, 1),
    Column("opcode", lambda r: r.opcode, "instruction", lambda r: r.opcode or "", False, 2, 18, shorten),
    Column("others", lambda r: dict(r.row.found), "in addition", lambda r: r.adjacent, False, 3, nested=True),
)
"""``share`` is of what all lines of all kernels have together, by the same probe. Without its measure a value would
mean nothing, so that column stays however narrow the table is."""


def no_lines_text() -> str:
    """Return what the user can do if no probe measured lines."""
    return f"No probe of this trace measures lines: run with -p {probe_names_where(lambda probe: probe.lines)[0]}."


def line_page(trace: Trace, progress: Progress = no_progress) -> TablePage[KernelLine]:
    """All lines, the largest share first."""
    damaged: list[str] = []
    rows = list(measured_lines(trace, progress, damaged))

    def opens(line: KernelLine) -> tuple[Path, int] | None:
        return trace.directory, line.kernel.index

    return TablePage(
        "lines",
        "Lines of all kernels",
        ALL_LINES_COLUMNS,
        rows,
        PageTexts((), [_lines_note(rows)] if rows else [], [*_lines_notes(trace, rows), *damaged], LINES_ABOUT),
        text_rows=MAX_LINES_SHOWN,
        opens=opens if rows else None,
        names=lambda line: (line.kernel.demangled, line.place, line.opcode or ""),
    )


def _lines_notes(trace: Trace, rows: Sequence[KernelLine]) -> Iterator[str]:
    """Yield what the user can do if there are no lines, and results that are too large to be read here."""
    if not rows:
        yield no_lines_text()
    for kernel in trace.kernels:
        if (read := result_bytes(ViewSource(trace, kernel))) > MAX_UNASKED_BYTES:
            yield f"#{kernel.index}: its {size(read)} of results are read only when you open its page"


def has_line_measures(trace: Trace) -> bool:
    """Return whether the probe of some kernel measures lines, and has a result."""
    telling = probe_names_where(lambda probe: probe.lines)
    return any(kernel.result_rows and analysis_name(probed) in telling for kernel in trace.kernels
               for probed in kernel.by_probe())  # fmt: skip


def _lines_note(rows: list[KernelLine]) -> str:
    kernels = len({line.kernel.index for line in rows})
    return f"{units.counted(len(rows), 'line')} of {units.counted(kernels, 'kernel')}, worst first"

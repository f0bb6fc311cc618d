"""Page of the measured lines of all kernels of a trace, those with the largest share first."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.charts import row_bar
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import clip, clip_clauses, pad, width
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts
from tui_probe.draw.units import NOT_MEASURED, size
from tui_probe.draw.view import no_progress, with_progress
from tui_probe.errors import TraceError
from tui_probe.pages.code.line_measures import line_rows, opcodes_of
from tui_probe.pages.code.measure_column import full_text
from tui_probe.pages.table_page import TablePage
from tui_probe.probekit.lines import ShareValue, measure_named
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.recognised import analysis_name
from tui_probe.probekit.registry import probe_names_where
from tui_probe.probekit.shown_results import joined_sources, read_joined, unjoined_sources
from tui_probe.trace.kernel_files import short_position
from tui_probe.verdicts.findings import MAX_UNASKED_BYTES, result_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.probekit.lines import LineMeasure, LineRow, LineRows, LineSpec, LineValue
    from tui_probe.trace.model import Kernel, Trace

_BAR_CELLS: Final = 8
MAX_LINES_SHOWN: Final = 40
"""Lines in the report; data has all."""
LINES_EXPLANATION: Final = (
    "Every line that a probe measured, in the newest result of each kernel. Lines are sorted by the first metric of"
    " their probe, the most wasteful first. The share is relative to the sum over all lines, in all kernels, that the"
    " same probe measured. If the metric is already a share, such as a share of warp life, this share is shown.",
    "Press Enter to see the line in the source or PTX of its kernel, and q to return. Page 6 has the lines of one"
    " kernel.",
)


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A line of a kernel with the measure by which it is ranked."""

    kernel: Kernel
    probe: str
    measure_name: str
    """Name of the ranking measure."""
    row: LineRow
    value: float
    """Value of the ranking measure."""
    measures: tuple[LineMeasure, ...]
    share: ShareValue
    """The value itself if it is a share, else its part of the sum over all lines of all kernels with the same probe."""
    opcode: str | None
    is_main: bool
    """True for the main measure of the probe; False if no line of the kernel has a value of the main measure."""

    @property
    def source_position(self) -> str:
        """``strided_store.cu:4``; ``–`` where no source is known."""
        source = self.row.source
        return NOT_MEASURED if source is None else f"{PurePath(source.file).name}:{source.line}"

    @property
    def other_values_text(self) -> str:
        """The other values of the line with their headings: ``512 executions, waits for barrier``."""
        other_values = {
            name: value for name, value in self.row.values.items() if name != self.measure_name and value is not None
        }
        return ", ".join(_titled_text(self._heading(name), value) for name, value in other_values.items())

    @property
    def heading(self) -> str:
        """The heading of the ranking measure, ``share of warp life`` for ``of warp life``."""
        heading = self._heading(self.measure_name)
        return f"share {heading}" if heading.startswith("of ") else heading

    def _heading(self, name: str) -> str:
        return measure_named(self.measures, name).heading


@dataclass(frozen=True, slots=True)
class MeasuredLines:
    """Lines with a number to compare kernels by, and an error text for each result that cannot be read.

    ``textual_results`` has kernel and probe of the results whose lines have words only, such as the kind of an invalid
    access.
    """

    lines: list[KernelLine]
    errors: list[str]
    textual_results: list[tuple[Kernel, str]]


@dataclass(frozen=True, slots=True)
class _RankedResult:
    """A result of a kernel: the values of the measure ``measure_name`` by line."""

    kernel: Kernel
    probe: str
    measure_name: str
    spec: LineSpec
    values: Sequence[tuple[LineRow, float]]
    opcodes: Mapping[int, str]
    is_textual: bool

    def lines(self, total: float) -> Iterator[KernelLine]:
        """Yield the lines. ``total`` is the sum of the measure over all kernels with the same probe."""
        is_main = self.measure_name == self.spec.main
        for row, value in self.values:
            share = value if isinstance(value, ShareValue) else ShareValue(value / total if total else 0.0)
            opcode = self.opcodes.get(row.line)
            yield KernelLine(
                self.kernel, self.probe, self.measure_name, row, value, self.spec.measures, share, opcode, is_main
            )


def measured_lines(
    trace: Trace, progress: Progress = no_progress, kernels: Sequence[Kernel] | None = None
) -> MeasuredLines:
    """Read the measured lines of these kernels, by default of all: main measures such as waste first, then by share of
    all kernels.
    """
    results: list[_RankedResult] = []
    errors: list[str] = []
    for kernel in with_progress(trace.kernels if kernels is None else kernels, progress):
        for source in _sources_with_lines(trace, kernel):
            try:
                results.append(_ranked_result(kernel, source))
            except (TraceError, OSError) as error:
                errors.append(f"#{kernel.index}: {printable(str(error))}")
    totals: defaultdict[tuple[str, str], float] = defaultdict(float)
    for result in results:
        for _, value in result.values:
            totals[result.probe, result.measure_name] += value
    lines = [line for result in results for line in result.lines(totals[result.probe, result.measure_name])]
    lines.sort(key=lambda line: (not line.is_main, -line.share, line.kernel.index, line.row.line))
    return MeasuredLines(lines, errors, [(result.kernel, result.probe) for result in results if result.is_textual])


def _sources_with_lines(trace: Trace, kernel: Kernel) -> Iterator[ViewSource]:
    """Yield the kernel under each probe that measures lines, if its newest result is not too large."""
    line_probes = probe_names_where(lambda probe: probe.lines)
    for source in unjoined_sources(ViewSource(trace, kernel)):
        measures_lines = analysis_name(source.kernel) in line_probes
        if measures_lines and source.kernel.result_rows and result_bytes(source) <= MAX_UNASKED_BYTES:
            yield source


def _ranked_result(kernel: Kernel, source: ViewSource) -> _RankedResult:
    """Read the newest result of a kernel under a probe. Raises TraceError or OSError if it cannot be read."""
    result = read_joined(joined_sources(source))
    spec, rows = line_rows(result)
    opcodes = opcodes_of(result)
    name = _ranking_measure(spec, rows)
    values = []
    for row in rows.rows:
        value = row.values.get(name)
        if isinstance(value, int | float) and row.line:
            values.append((row, value if isinstance(value, ShareValue) else float(value)))
    is_textual = any(isinstance(row.values.get(name), str) for row in rows.rows)
    return _RankedResult(kernel, result.name, name, spec, values, opcodes, is_textual)


def _ranking_measure(spec: LineSpec, lines: LineRows) -> str:
    """Return the measure that ranks lines: the first that is a sum and that some line has, so each has a share."""
    by_name = sorted(spec.measures, key=lambda measure: measure.name != spec.main)
    sums = [measure.name for measure in by_name if measure.rule == "sum"]
    measured_sums = (name for name in sums if any(row.values.get(name) for row in lines.rows))
    return next(measured_sums, spec.main)


def _integer_if_whole(value: float) -> float:
    return int(value) if value.is_integer() and not isinstance(value, ShareValue) else value


def _titled_text(heading: str, value: LineValue) -> str:
    return f"{heading} {printable(value)}" if isinstance(value, str) else f"{_value_text(value)} {heading}"


def _value_text(value: LineValue) -> str:
    return printable(full_text(value))


ALL_LINES_COLUMNS: Final[tuple[Column[KernelLine], ...]] = (
    Column("kernel", lambda r: r.kernel.index, "#", lambda r: str(r.kernel.index)),
    Column("name", lambda r: r.kernel.name),
    Column(
        "demangled",
        lambda r: r.kernel.demangled,
        "kernel",
        lambda r: r.kernel.demangled,
        right=False,
        narrow=12,
        shorten=shorten,
    ),
    Column("ptx_line", lambda r: r.row.line, "line", lambda r: short_position(r.row.line)),
    Column("probe", lambda r: r.probe),
    Column("measure", lambda r: r.measure_name, "measure", lambda r: r.heading, right=False),
    Column("value", lambda r: float(r.value), "value", lambda r: _value_text(_integer_if_whole(r.value))),
    Column("share", lambda r: float(r.share), "share", lambda r: r.share.text),
    Column("file", lambda r: r.row.source.file if r.row.source else None),
    Column("source_line", lambda r: r.row.source.line if r.row.source else None),
    Column("place", None, "source", lambda r: r.source_position, right=False, rank=1),
    Column(
        "opcode",
        lambda r: r.opcode,
        "instruction",
        lambda r: r.opcode or "",
        right=False,
        rank=2,
        narrow=18,
        shorten=shorten,
    ),
    Column(
        "others",
        lambda r: dict(r.row.values),
        "in addition",
        lambda r: r.other_values_text,
        right=False,
        rank=3,
        nested=True,
    ),
)
"""The column of the measure stays at any table width, because a value means nothing without it."""


def ranked_lines(lines: Sequence[KernelLine], cells: int) -> list[Line]:
    """Return a list, ``cells`` wide, of a kernel's source lines with the largest share of their first measure."""
    by_place: defaultdict[str, list[KernelLine]] = defaultdict(list)
    for line in lines:
        if line.share and (line.probe, line.measure_name) == (lines[0].probe, lines[0].measure_name):
            by_place[line.source_position if line.row.source else short_position(line.row.line)].append(line)
    if not by_place:
        return []
    ranked = sorted(by_place.items(), key=lambda item: -sum(line.value for line in item[1]))
    texts = [(place, _opcode_text(group), _sum_text(group)) for place, group in ranked]
    widths = [max(width(part) for part in column) for column in zip(*texts, strict=True)]
    rows: list[Line] = [((clip(f" lines by {lines[0].heading}, {lines[0].probe}", cells), "head"),)]
    for (_, parts), (place, opcode, value) in zip(ranked, texts, strict=True):
        share = ShareValue(sum(line.share for line in parts))
        other_values = parts[0].other_values_text if len(parts) == 1 else ""
        text = f" {pad(place, widths[0])}  {pad(opcode, widths[1])}  {pad(value, widths[2], right=True)}  "
        bar = f" {row_bar(share, _BAR_CELLS)}"
        text_cells = cells - len(bar) - 6
        text += clip_clauses(other_values, max(0, text_cells - width(text)), ", ")
        rows.append(((bar, "hue0"), (f" {share.text:>4} ", ""), (clip(text, text_cells), "")))
    return rows


def _opcode_text(parts: Sequence[KernelLine]) -> str:
    """Return ``ld.global.b32 ×4``, or the number of instructions if they differ."""
    opcodes = {line.opcode or "" for line in parts}
    if len(opcodes) > 1:
        return f"{len(parts)} instructions"
    return f"{opcodes.pop()} ×{len(parts)}" if len(parts) > 1 else opcodes.pop()


def _sum_text(parts: Sequence[KernelLine]) -> str:
    """Return the sum of the values; "" of shares, which are beside the bar."""
    if isinstance(parts[0].value, ShareValue):
        return ""
    return _value_text(_integer_if_whole(sum(float(line.value) for line in parts)))


def no_lines_text() -> str:
    """Return the advice for a trace in which no probe measured lines."""
    return f"No probe of this trace measures lines: run with -p {probe_names_where(lambda probe: probe.lines)[0]}."


def line_page(trace: Trace, progress: Progress = no_progress) -> TablePage[KernelLine]:
    """Return all lines, the largest share first."""
    lines = measured_lines(trace, progress)
    rows = lines.lines

    def kernel_target(line: KernelLine) -> tuple[Path, int] | None:
        return trace.directory, line.kernel.index

    return TablePage(
        "lines",
        "Lines of all kernels",
        ALL_LINES_COLUMNS,
        rows,
        PageTexts(
            (), [_summary(rows)] if rows else [], [*_missing_notes(trace, lines), *lines.errors], LINES_EXPLANATION
        ),
        text_rows=MAX_LINES_SHOWN,
        kernel_of_row=kernel_target if rows else None,
        names_of_row=lambda line: (line.kernel.demangled, line.source_position, line.opcode or ""),
    )


def _missing_notes(trace: Trace, lines: MeasuredLines) -> Iterator[str]:
    """Yield how to get lines if there are none, and the kernels whose lines are not in this table."""
    if not lines.lines and not has_line_measures(trace):
        yield no_lines_text()
    for probe in dict.fromkeys(probe for _, probe in lines.textual_results):
        kernels = ", ".join(
            f"#{kernel.index}" for kernel, kernel_probe in lines.textual_results if kernel_probe == probe
        )
        yield (
            f"{kernels}: lines of {probe} have no value for sorting. To list these lines: tui-probe show lines"
            " TRACE:KERNEL"
        )
    for kernel in trace.kernels:
        if (byte_count := result_bytes(ViewSource(trace, kernel))) > MAX_UNASKED_BYTES:
            yield f"#{kernel.index}: its {size(byte_count)} of results are read only when you open this kernel's page"


def has_line_measures(trace: Trace) -> bool:
    """Return whether a probe of the trace measures lines and has a result."""
    line_probes = probe_names_where(lambda probe: probe.lines)
    return any(kernel.result_rows and analysis_name(probed_kernel) in line_probes for kernel in trace.kernels
               for probed_kernel in kernel.by_probe())  # fmt: skip


def _summary(rows: Sequence[KernelLine]) -> str:
    """Return ``12 lines of 3 kernels, worst first``."""
    kernels = len({line.kernel.index for line in rows})
    return f"{units.counted(len(rows), 'line')} of {units.counted(kernels, 'kernel')}, worst first"

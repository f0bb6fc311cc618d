"""Tensor core operations: matrix instructions executed in a launch, and the multiply-adds in them.

Every lane counted its share. With the sums over all warps::

    mma, wmma      = counted / 32         instructions, each executed by a warp
    wgmma          = counted / 128        instructions, each executed by four warps
    multiply_adds  = sum of the shares    m · n · k of each instruction
    operations     = 2 · multiply_adds    as in 2·M·N·K of a matrix product

A product whose sides are not multiples of the tile computes more than 2·M·N·K: the padding is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit.finding import Finding, counted, percent, place, timed
from tui_probe.probekit.lines import LineMeasure, LineRows, LineSpec, ranked_rows
from tui_probe.probekit.metric import Metric, metrics_by_line, show_nonzero
from tui_probe.probekit.probe import Probe, Question, analysis_of_result, analysis_of_sites
from tui_probe.records.counter_sums import CountsByLine, counts_by_line, line_sums, site_dtype, sum_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.counter_sums import LineSums
    from tui_probe.trace.results import Result


RECORD: Final = np.dtype(
    {
        "names": ["multiply_adds", "mma", "wmma", "wgmma", "threads"],
        "formats": ["<u8"] * 4 + ["<u4"],
        "offsets": [0, 8, 16, 24, 32],
        "itemsize": 40,
    }
)
"""Record of ``tensorop_count`` per warp: sums over its lanes."""
SITE: Final = site_dtype("multiply_adds", "mma", "wmma", "wgmma")
"""Record of ``tensorop_count_by_line`` per instruction: sums over lanes."""
_LANES: Final = {"mma": 32, "wmma": 32, "wgmma": 128}
METRICS: Final = (
    Metric("operations", "operations", quantity="tensor operations", standalone_title="tensor operations"),
    Metric("multiply_adds", "multiply-adds"),
    Metric("mma", "mma", is_shown=show_nonzero),
    Metric("wmma", "wmma", is_shown=show_nonzero),
    Metric("wgmma", "wgmma", is_shown=show_nonzero),
)
BY_LINE: Final = metrics_by_line(METRICS, "most multiply-adds")


@dataclass(frozen=True, slots=True)
class TensorOperations:
    """Instructions and multiply-adds of one launch."""

    multiply_adds: int
    mma: int
    wmma: int
    wgmma: int
    threads_missing: int

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.multiply_adds


def analyse(result: Result) -> TensorOperations:
    """The operations of one launch; TraceError if map 0 holds no records of ``tensorop_count``."""
    sums = sum_records(result, RECORD, "tensorop_count")
    return _operations(result, sums.totals, sums.threads_missing)


def analyse_lines(result: Result, sites: Sequence[int], folder: Path | None = None) -> CountsByLine[TensorOperations]:
    """Counts by line of ``tensorop_count_by_line``; see :func:`counter_sums.line_sums`. Raises TraceError."""
    lines = line_sums(result, SITE, "tensorop_count_by_line", sites, folder)
    return counts_by_line(
        lines, SITE, lambda sums: _operations(result, sums, 0), lambda line: multiply_adds_of(line) or None
    )


def instructions_of(line: LineSums) -> int:
    """Return the executions of one line by a warp or, for wgmma, by four warps."""
    return sum(line.sums[name] // lanes for name, lanes in _LANES.items())


def multiply_adds_of(line: LineSums) -> int:
    """The multiply-adds of one line."""
    return line.sums["multiply_adds"]


def _operations(result: Result, sums: dict[str, int], threads_missing: int) -> TensorOperations:
    """Return the operations from sums over lanes. Raises TraceError if they are not whole instructions though no
    thread is missing.
    """
    counts = {}
    for name, lanes in _LANES.items():
        counts[name], remainder = divmod(sums[name], lanes)
        if remainder and not threads_missing:
            raise TraceError(
                f"{result.path}: {sums[name]} lanes executed {name}; this number is not a multiple of {lanes}"
            )
    return TensorOperations(sums["multiply_adds"], **counts, threads_missing=threads_missing)


def findings(probe_result: ProbeResult, analysis: TensorOperations) -> Iterator[Finding]:
    """Yield the operations of the tensor cores."""
    text, speed = "no matrix instruction was executed", None
    if analysis.operations:
        kinds = [f"{units.count(count)} {name}" for name, count in
                 (("mma", analysis.mma), ("wmma", analysis.wmma), ("wgmma", analysis.wgmma)) if count]  # fmt: skip
        text = f"{_scaled_count(analysis.operations)} operations in {', '.join(kinds)}"
        if probe_result.measured_ms:
            seconds = probe_result.measured_ms * 1e-3
            speed = analysis.operations / seconds
            text += f"; {speed / 1e12:.3g} TFLOP/s at the unprobed time of {units.duration(seconds)}"
    values = {
        "operations": counted(analysis.operations),
        "operations_per_second": timed(speed, "1/s"),
    }
    yield Finding("operations", "tensor cores", text, values=values)


def findings_by_line(probe_result: ProbeResult, analysis: CountsByLine[TensorOperations]) -> Iterator[Finding]:
    """Yield the findings, then the line with most operations."""
    yield from findings(probe_result, analysis.analysis)
    if analysis.worst is not None:
        line, multiply_adds = analysis.worst
        part = percent(multiply_adds, analysis.analysis.multiply_adds)
        text = f"{place(line.line, line.source, line.opcode)}, {part} of all tensor operations"
        yield Finding("most_operations", "most operations", text, "lines", line.line)


def _scaled_count(number: int) -> str:
    """``12 288``, ``2.15 G``: as much as a user reads at the same time."""
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return units.count(number)


def _line_rows(probe_result: ProbeResult, analysis: CountsByLine[TensorOperations]) -> LineRows:
    del probe_result
    rows = ranked_rows(
        analysis.lines,
        multiply_adds_of,
        lambda line: {"multiply-adds": multiply_adds_of(line), "instructions": instructions_of(line)},
    )
    return LineRows(
        rows, ["mma and wmma count once per warp, wgmma once per four warps; a multiply-add is two operations"]
    )


LINES: Final = LineSpec(
    (LineMeasure("share"), LineMeasure("multiply-adds", "sum"), LineMeasure("instructions", "sum")),
    "multiply-adds",
    _line_rows,
)


PROBES: Final = (
    Probe(
        name="tensorop_count",
        analyse=analysis_of_result(analyse),
        metrics=METRICS,
        answers=("tensor cores",),
        findings=findings,
    ),
    Probe(
        name="tensorop_count_by_line",
        analyse=analysis_of_sites(analyse_lines),
        metrics=BY_LINE,
        question=Question("tensor cores", "how many tensor operations, at which lines?", 60, r"mma"),
        findings=findings_by_line,
        lines=LINES,
    ),
)

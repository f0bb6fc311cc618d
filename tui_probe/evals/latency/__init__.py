"""Exposed latency: what a program waits for before, in and after a probed kernel, next to the original and ncu."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.charts import Bar, BarChart
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.evals.answer import Answer, Table
from tui_probe.evals.evaluation import (
    PROGRAMS_PLACEHOLDER,
    PYTHON_PLACEHOLDER,
    Collection,
    Evaluation,
    nothing_measured_error,
)
from tui_probe.evals.inputs import output_lines
from tui_probe.input_limits import MEDIANS, parse_json
from tui_probe.trace.plain_file import read_plain, read_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.evals.evaluation import Setting
    from tui_probe.evals.inputs import EvaluationInput

PROBES: Final = ("block_sched", "gmem_bytes", "tensorop_count", "dmat")
OPERATIONS: Final = ("attn", "gmm", "conv", "gemm")
_KERNELS: Final = "attention_forward:matrix_product:convolve"
_TIMES: Final = ("--times", "10")
"""Number of calls: with dmat each leaves up to 50 MB."""
_BUDGETS: Final = (
    "--no-times", "--no-source", "--max-trace-bytes", "8G", "--max-result-files", "none", "--max-write-rate", "none",
    "--max-log-bytes", "1M",
)  # fmt: skip
_METRICS: Final = "dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum,gpu__time_duration.sum"
KEYS: Final = ("probe", "original", "ncu", "neutrino", "prologue", "kernel", "epilogue")
"""The columns of a file of medians."""
_HEADING_BYTES: Final = 4096
"""Bytes of a file in which its headings are looked for."""
TimingMethod = Literal["original", "probed", "ncu"]
NAME: Final = "latency"
_OUTPUT_START: Final = '{"latency": '
"""Start of a line of the program's output that has the times of calls."""
_PARTS: Final = ("prologue", "kernel", "epilogue", "ncu")
_PUBLISHED_COLUMNS: Final[tuple[Column[CallTimes], ...]] = tuple(Column(key, attrgetter(key)) for key in KEYS)
"""Columns for CSV; the text has only the main table."""


def collect(setting: Setting) -> list[Collection]:
    """A run for each probe; on the simulated GPU of the operation that needs no framework, to see that it runs."""
    if setting.simulated:
        arguments = ("sums", "--size", "4", "--times", "3", "--ahead", "0")
        return list(_runs("accumulate", arguments, ("block_sched",), ()))
    return list(_runs(_KERNELS, (*OPERATIONS, *_TIMES), PROBES, ("torch", "triton")))


def _runs(
    kernels: str, arguments: tuple[str, ...], probes: tuple[str, ...], modules: tuple[str, ...]
) -> Iterator[Collection]:
    argv = (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/calls.py", *arguments)
    nothing = ("-p", "block_sched", "-k", "no kernel of this name", "--launches", "0", *_BUDGETS)
    yield Collection("original", argv, nothing, modules)
    for probe in probes:
        options = ("-p", probe, "-k", kernels, "--launches", "all", *_BUDGETS)
        yield Collection(probe, argv, options, modules)
    yield Collection("ncu", argv, ("--ncu", _METRICS), modules, ("ncu",), gpu=True, output_kind="output")


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one run: medians in microseconds, None where the simulated GPU has no time.

    ``probe`` is "" where nothing was probed. ``left_out`` are launches of the run that should have been probed and were
    not; the log does not say to which of its operations they belong.
    """

    operation: str
    how: TimingMethod
    probe: str
    total: float | None
    call: float | None
    stream: float | None
    left_out: int = 0

    @property
    def parts(self) -> tuple[float, float, float] | None:
        """Prologue, kernel, epilogue, as the evaluation says; the sum is the total, unless host and stream overlap."""
        if self.total is None or self.call is None or self.stream is None:
            return None
        return self.call, self.stream, max(self.total - self.call - self.stream, 0.0)


@dataclass(frozen=True, slots=True)
class CallTimes:
    """An operation with one probe, in microseconds, or in the unit of the file it was read from."""

    operation: str
    probe: str
    original: float | None
    ncu: float | None
    neutrino: float | None
    prologue: float | None
    kernel: float | None
    epilogue: float | None

    def ratio(self, value: float | None) -> float | None:
        """A time as that many times the original."""
        return value / self.original if value is not None and self.original else None


def read_calls(source: EvaluationInput) -> list[Calls]:
    """The calls in a trace's output, or in that of a run under ncu; none where the program is another one."""
    trace = source.trace
    path = source.path if trace is None else trace.file("stdout.log")
    lines = [] if path is None else output_lines(path, _OUTPUT_START)
    is_probed, unprobed_launches, probe = False, 0, ""
    if trace is not None:
        kernels = [kernel for kernel in trace.kernels if kernel.status == "probed"]
        is_probed = any(kernel.launches_probed for kernel in kernels)
        unprobed_launches = sum(kernel.launches - kernel.launches_probed for kernel in kernels) if is_probed else 0
        probe = (trace.run_info.probe or "" if trace.run_info is not None else "") if is_probed else ""
    method: TimingMethod = "ncu" if trace is None else "probed" if is_probed else "original"
    simulated = trace is not None and trace.state.simulated
    try:
        return [_calls(parse_json(line), method, probe, unprobed_launches, has_times=not simulated) for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path}: cannot read a line with call times ({error}); collect the file again") from error


def _calls(line: dict[str, Any], method: TimingMethod, probe: str, left_out: int, *, has_times: bool) -> Calls:
    total, call, stream = (float(np.median(line[key])) if has_times else None for key in ("total", "call", "stream"))
    return Calls(str(line["latency"]), method, probe, total, call, stream, left_out)


def is_median_table(path: Path) -> bool:
    """Return True if a file begins with the columns of medians."""
    try:
        heading = read_plain(path, _HEADING_BYTES).decode("utf-8-sig", "replace").partition("\n")[0]
        return set(KEYS) <= {cell.strip() for cell in next(csv.reader([heading.rstrip("\r")]), [])}
    except OSError:
        return False


def read_median_table(path: Path) -> list[CallTimes]:
    """The rows of a file of medians, whose operation is the file's name. TraceError for a cell that is not a number."""
    try:
        text = read_within(path, MEDIANS).decode("utf-8-sig", "replace")
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    rows = csv.DictReader(io.StringIO(text, newline=""))
    lines = [{(key or "").strip(): value for key, value in line.items()} for line in rows]
    return [_call_times(path, number, line) for number, line in enumerate(lines, 2)]


def _call_times(path: Path, number: int, line: dict[str, Any]) -> CallTimes:
    def value(key: str) -> float | None:
        text = (line.get(key) or "").strip()
        try:
            return float(text) if text else None
        except ValueError:
            raise TraceError(f"{path}:{number}: {key} is {text!r}, not a number") from None

    return CallTimes(path.stem, (line.get("probe") or "").strip(), *map(value, KEYS[1:]))


def call_times_of_runs(calls: list[Calls]) -> tuple[list[CallTimes], list[str]]:
    """Return each probed run next to the original and ncu of its operation, and notes on missing ones."""
    rows, notes = [], []
    for call in calls:
        if call.how != "probed":
            continue
        original, ncu = (_median(calls, call.operation, method) for method in ("original", "ncu"))
        prologue, kernel, epilogue = call.parts or (None, None, None)
        rows.append(CallTimes(call.operation, call.probe, original, ncu, call.total, prologue, kernel, epilogue))
        if call.left_out:
            notes.append(
                f"{call.operation} with {call.probe}: {units.counted(call.left_out, 'launch')} ran unprobed; medians"
                f" may include these launches"
            )
    operations = {call.operation for call in calls if call.how == "probed"}
    for operation in dict.fromkeys(call.operation for call in calls):
        if operation not in operations:
            notes.append(f"{operation}: no probed run; collect a probed run with --only PROBE")
        elif not any(call.how == "original" for call in calls if call.operation == operation):
            notes.append(
                f"{operation}: the unprobed run is missing, so there are no ratios; collect it with --only original"
            )
    return rows, notes


def _median(calls: list[Calls], operation: str, method: TimingMethod) -> float | None:
    return next((call.total for call in calls if (call.operation, call.how) == (operation, method)), None)


def answer(inputs: Sequence[EvaluationInput], progress: Progress) -> Answer:
    """Compare every probed run with the original and ncu."""
    rows, notes = _read_call_times(inputs, progress)
    operations = list(dict.fromkeys(row.operation for row in rows))
    by_operation = {name: [row for row in rows if row.operation == name] for name in operations}
    tables: dict[str, Table[Any]] = {"latency": Table("median times of a call", _COLUMNS, rows)}
    tables |= {name: Table(name, _PUBLISHED_COLUMNS, rows, in_text=False) for name, rows in by_operation.items()}
    charts = {name: _chart(name, rows) for name, rows in by_operation.items() if any(row.original for row in rows)}
    return Answer(said=list(map(_sentence, rows)), tables=tables, drawings=charts, notes=notes)


def _read_call_times(inputs: Sequence[EvaluationInput], progress: Progress) -> tuple[list[CallTimes], list[str]]:
    """Read calls and notes from traces, outputs and files of medians. Raises TraceError if none has any."""
    rows: list[CallTimes] = []
    calls, notes = [], []
    for place, source in enumerate(inputs):
        progress(place / len(inputs))
        if source.trace is None and is_median_table(source.path):
            rows += read_median_table(source.path)
        elif calls_of_source := read_calls(source):
            calls += calls_of_source
        else:
            notes.append(f"{source.path}: the program printed no call times")
    probed_rows, more_notes = call_times_of_runs(calls)
    rows += probed_rows
    if not rows:
        raise nothing_measured_error(NAME, [*notes, *more_notes])
    if any(row.neutrino is None for row in probed_rows):
        more_notes.append("the simulated GPU has no times; collect the traces on a GPU")
    if not any(row.ncu for row in rows):
        more_notes.append("no run under ncu, so the column “ncu” is empty")
    return rows, [*notes, *more_notes]


def _sentence(row: CallTimes) -> str:
    ratio = row.ratio(row.neutrino)
    if ratio is None:
        return f"{row.operation} with {row.probe}: {NOT_MEASURED}"
    ncu = row.ratio(row.ncu)
    ncu_text = "" if ncu is None else f", under ncu {ncu:.2f}×"
    return f"{row.operation} with {row.probe}: {ratio:.2f}× the original{ncu_text}"


def _chart(operation: str, rows: Sequence[CallTimes]) -> BarChart:
    """Two bars per probe, as multiples of the original: ours in its parts, and ncu."""
    bars = []
    for row in rows:
        ours = (row.ratio(row.prologue), row.ratio(row.kernel), row.ratio(row.epilogue), None)
        bars.append(Bar(row.probe, ours, units.ratio(row.ratio(row.neutrino))))
        if row.ncu is not None:
            bars.append(Bar("  under ncu", (None, None, None, row.ratio(row.ncu)), units.ratio(row.ratio(row.ncu))))
    return BarChart(f"exposed latency of {operation}", bars, _PARTS, "times the original", units.ratio)


def _microseconds(key: str, title: str, rank: int = 0) -> Column[CallTimes]:
    value_of = attrgetter(key)
    return Column(key, value_of, title, lambda row: _duration(value_of(row)), rank=rank)


def _duration(value: float | None) -> str:
    return NOT_MEASURED if value is None else units.duration(value / 1e6)


_COLUMNS: Final[tuple[Column[CallTimes], ...]] = (
    Column("operation", attrgetter("operation"), "operation", attrgetter("operation"), right=False),
    Column("probe", attrgetter("probe"), "probe", attrgetter("probe"), right=False, narrow=12),
    _microseconds("original", "original"),
    _microseconds("ncu", "ncu", 1),
    _microseconds("neutrino", "probed"),
    _microseconds("prologue", "prologue"),
    _microseconds("kernel", "kernel"),
    _microseconds("epilogue", "epilogue"),
    Column("times", lambda r: r.ratio(r.neutrino), "times", lambda r: units.ratio(r.ratio(r.neutrino))),
    Column("times_ncu", lambda r: r.ratio(r.ncu), "ncu times", lambda r: units.ratio(r.ratio(r.ncu)), rank=1),
)


EVALUATION: Final = Evaluation(
    name="latency",
    question="how long does a program wait before, in and after a probed kernel?",
    probes=PROBES,
    reading=(
        "Each operation is called many times, one call at a time. The time of a call runs from the call to the"
        " result, measured by the host's clock. “Original” is the same call without a probe, “ncu” is the same call"
        " under Nsight Compute.",
        "Records are kept in pooled buffers. While these buffers are cleared and copied back, the program continues."
        " The time of a call includes this work only if the host waits for it. The prologue is the host's wait"
        " until the launch call returns. The kernel part is the time between an event before the launch and an event"
        " after the launch. Earlier work keeps the GPU busy during this measurement. The kernel part includes all work"
        " between the two events. The epilogue is the remaining time until the result is available, and never less"
        " than 0. Prologue and kernel part are medians; the epilogue is the median of the whole call minus these two"
        " medians. The original call has these parts, too: the cost of the probe is the difference. The wait at the"
        " program's end, until the last records are saved, is not included.",
        "CSV files with the columns probe, original, ncu, neutrino, prologue, kernel, epilogue are also read, one file"
        " per operation. --csv --table OPERATION writes such a file. In these files, the column “neutrino” is the"
        " probed call.",
    ),
    open=answer,
    collect=collect,
)

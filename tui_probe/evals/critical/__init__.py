"""Sectors that stores take, expected and counted, and the critical kernel of a program with its data type."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tui_probe.draw import units
from tui_probe.draw.charts import Bar, BarChart
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.errors import ImportFileError
from tui_probe.evals.answer import Answer, Table, compare_published
from tui_probe.evals.evaluation import (
    PROGRAMS_PLACEHOLDER,
    PYTHON_PLACEHOLDER,
    Collection,
    Evaluation,
    nothing_measured_error,
)
from tui_probe.nsight.analysis.critical import ExpectedTensor, data_type
from tui_probe.nsight.analysis.kernel_metrics import COUNT_METRICS
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.pages.critical_page import columns_of, critical_page
from tui_probe.nsight.pages.memory_pages import SECTOR_COLUMNS, sector_rows
from tui_probe.nsight.pages.trace_counters import metrics_of_traces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.evals.evaluation import Setting
    from tui_probe.evals.inputs import EvaluationInput
    from tui_probe.nsight.analysis.kernel_metrics import KernelMetrics
    from tui_probe.nsight.pages.critical_page import CriticalRow
    from tui_probe.nsight.pages.memory_pages import SectorRow
    from tui_probe.trace.model import Trace

PROBE: Final = "gmem_sectors"
STORES: Final = "stores"
TENSORS: Final = {"llama_fp32": ExpectedTensor(128, 4096, "fp32"), "llama_bf16": ExpectedTensor(128, 4096, "bf16")}
"""Tensor that the attention of these programs writes."""
_COUNT_OPTIONS: Final = (
    "--launches",
    "all",
    "--no-times",
    "--no-source",
    "--max-trace-bytes",
    "64M",
    "--max-log-bytes",
    "1M",
)
_METRICS: Final = ",".join(
    (
        *(
            f"l1tex__t_{unit}_pipe_lsu_mem_global_op_{op}.sum"
            for op in ("ld", "st")
            for unit in ("requests", "sectors")
        ),
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "regex:sm__ops_path_tensor_src.*",
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "sm__inst_executed.avg.per_cycle_active",
        "dram__bytes.sum.per_second",
        "gpu__time_duration.sum",
    )
)
NAME: Final = "critical"
_OMITTED_COLUMNS: Final = ("program", "origin", "grid", "block")
"""Columns of the pages that say what the program's name says, or little."""
Row = TypeVar("Row")
_NAME_COLUMN: Final[Column[ProgramRow[Any]]] = Column(
    "program", lambda r: r.program.name, "program", lambda r: r.program.name, right=False, narrow=10
)


def collect(setting: Setting) -> list[Collection]:
    """Return two runs per program: ``PROGRAM-probes`` and ``PROGRAM-ncu``. Stores need no framework, and run
    simulated, too.
    """
    runs = list(_runs(STORES, (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/stores.py"), ()))
    if setting.simulated:
        return runs
    for name in TENSORS:
        argv = (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/stores.py", name)
        runs += _runs(name, argv, ("torch",), "--capture-range")
    return runs


def _runs(name: str, argv: tuple[str, ...], modules: tuple[str, ...], *part: str) -> Iterator[Collection]:
    yield Collection(f"{name}-probes", argv, ("-p", PROBE, *part, *_COUNT_OPTIONS), modules)
    yield Collection(
        f"{name}-ncu", argv, (*part, "--ncu", _METRICS), modules, tools=("ncu",), gpu=True, output_kind="ncu"
    )


@dataclass
class Program:
    """One program. ``sectors`` and ``kernels`` are rows of the pages of the same names, after ``read``."""

    name: str
    files: list[Path] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    sectors: list[SectorRow] = field(default_factory=list)
    kernels: list[CriticalRow] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def tensor(self) -> ExpectedTensor | None:
        """Tensor that the program writes, if known."""
        return TENSORS.get(self.name)

    @property
    def critical(self) -> KernelMetrics | None:
        """The critical kernel, by ncu where there is one."""
        return next((row.metrics for row in self.kernels if row.is_critical), None)

    @property
    def data_type(self) -> str | None:
        """Data type of the critical kernel, if its name has one."""
        kind = None if self.critical is None else data_type(self.critical)
        return None if kind is None else kind.name

    @property
    def stores_counted(self) -> bool:
        """True if the counts include stores of the critical kernel. It writes a tensor, so 0 means unprobed."""
        return self.critical is not None and bool(self.critical.store_sectors)

    def read(self) -> None:
        """Read the files; one that cannot be read is a note."""
        try:
            table = read_ncu(self.files) if self.files else None
        except ImportFileError as error:
            self.notes.append(str(error))
            table = None
        probe_metrics = metrics_of_traces(self.traces)
        if self.traces and not probe_metrics:
            self.notes.append(f"{self.name}: the probe counted nothing; reasons: {_why_unprobed(self.traces)}")
        if table is None and not probe_metrics:
            return
        self.sectors = sector_rows(table, probe_metrics, self.tensor)
        page = critical_page(table, (), probe_metrics=probe_metrics, tensor=self.tensor)
        self.kernels = list(page.rows)
        self.findings = [*page.texts.findings, *page.texts.evidence]
        self.notes += page.texts.notes
        if self.tensor is not None and self.critical is not None and not self.stores_counted:
            self.notes.append(
                f"{self.name}: the counters show no stores of the critical kernel. The counters count only load and"
                f" store instructions, so this kernel probably stores with TMA"
            )


def _why_unprobed(traces: Sequence[Trace]) -> str:
    """Return the reasons why no kernel of these traces was probed."""
    reasons = (kernel.reason or kernel.status for trace in traces for kernel in trace.kernels)
    return "; ".join(dict.fromkeys(reasons)) or "no kernel was launched"


def programs_of_inputs(inputs: Sequence[EvaluationInput]) -> list[Program]:
    """``NAME-probes`` and ``NAME-ncu.csv`` are of one program, as every other trace and file is of its own."""
    programs: dict[str, Program] = {}
    for item in inputs:
        name = item.label.removesuffix(".csv").removesuffix("-ncu").removesuffix("-probes")
        program = programs.setdefault(name, Program(name))
        if item.trace is None:
            program.files.append(item.path)
        else:
            program.traces.append(item.trace)
    return list(programs.values())


@dataclass(frozen=True, slots=True)
class ProgramRow(Generic[Row]):
    """A row of a page, and the program that it is of."""

    program: Program
    row: Row


def answer(inputs: Sequence[EvaluationInput], progress: Progress) -> Answer:
    """All programs, each by its files and traces. TraceError if none has any count."""
    programs = programs_of_inputs(inputs)
    for place, program in enumerate(programs):
        progress(place / len(programs))
        program.read()
    notes = [text for program in programs for text in program.notes]
    sectors = [ProgramRow(program, row) for program in programs for row in program.sectors]
    if not any(getattr(kernel.row.metrics, name) is not None for kernel in sectors for name in COUNT_METRICS):
        raise nothing_measured_error(NAME, [*notes, f"no counts: run with -p {PROBE}, or record the program with ncu"])
    kernels = [ProgramRow(program, row) for program in programs for row in program.kernels]
    return Answer(
        said=[
            *map(_program_sentence, programs),
            *(text for program in programs if program.critical for text in program.findings),
        ],
        tables={
            "sectors": Table(
                "sectors, expected and counted",
                [_NAME_COLUMN, _EXPECTED_COLUMN, *_columns_with_program(SECTOR_COLUMNS)],
                sectors,
            ),
            "critical": Table(
                "critical kernels",
                [
                    _NAME_COLUMN,
                    *_columns_with_program(columns_of([kernel.row for kernel in kernels], has_programs=True)),
                ],
                kernels,
            ),
        },
        drawings={"sectors": _chart(sectors)},
        compared=compare_published(NAME, **_ours(programs)),
        notes=notes,
    )


def _program_sentence(program: Program) -> str:
    """The critical kernel, its type, and whether it stores what it should."""
    critical = program.critical
    if critical is None:
        return f"{program.name}: no critical kernel found"
    text = f"{program.name}: the critical kernel is {shorten(critical.shape.kernel, 48)}"
    if program.data_type is not None:
        text += f", {program.data_type}"
    if program.tensor is not None and critical.store_sectors is not None:
        text += (
            f"; stored {units.count(round(critical.store_sectors))} sectors,"
            f" expected {units.count(program.tensor.sectors)}"
            if program.stores_counted
            else "; the number of stored sectors is unknown"
        )
    return text


def _columns_with_program(columns: Sequence[Column[Any]]) -> list[Column[ProgramRow[Any]]]:
    """The columns of a page, for rows that name their program."""
    return [_column_of_row(column) for column in columns if column.key not in _OMITTED_COLUMNS]


def _column_of_row(column: Column[Any]) -> Column[ProgramRow[Any]]:
    value, text = column.value, column.text
    return replace(
        column,
        value=None if value is None else lambda r: value(r.row),
        text=None if text is None else lambda r: text(r.row),
    )


def _expected_sectors(sectors: ProgramRow[SectorRow]) -> int | None:
    tensor = sectors.row.tensor
    return None if tensor is None else tensor.sectors


_EXPECTED_COLUMN: Final[Column[ProgramRow[SectorRow]]] = Column(
    "expected_sectors", _expected_sectors, "expected", lambda r: units.count(_expected_sectors(r)), rank=1
)


def _chart(rows: Sequence[ProgramRow[SectorRow]]) -> BarChart:
    """Sectors per store request: 4 are coalesced stores of 4 bytes."""
    bars = [
        Bar(f"{sectors.program.name} {shorten(sectors.row.metrics.shape.kernel, 24)} ({sectors.row.metrics.tool})",
            (sectors.row.metrics.sectors_per_store,))
        for sectors in rows
        if sectors.row.metrics.store_requests
    ]  # fmt: skip
    return BarChart("sectors per store request", bars, ("sectors per request",), "sectors", lambda n: f"{n:.2f}")


def _ours(programs: Sequence[Program]) -> dict[str, float | None]:
    """Ours of what was published; by ncu where both counted."""
    ours: dict[str, float | None] = {}
    for program in programs:
        if program.name == STORES:
            for row in reversed(program.sectors):
                kind = row.metrics.shape.kernel.partition("_")[0]
                if kind in ("coalesced", "strided"):
                    ours[f"{kind}_requests"] = row.metrics.store_requests
                    ours[f"{kind}_sectors"] = row.metrics.store_sectors
        elif program.tensor is not None and program.critical is not None and program.stores_counted:
            ours[f"{program.name}_requests"] = program.critical.store_requests
            ours[f"{program.name}_sectors"] = program.critical.store_sectors
    return ours


EVALUATION: Final = Evaluation(
    name="critical",
    question="which kernel of a program is the critical kernel, and does it store the minimum number of sectors?",
    probes=(PROBE,),
    reading=(
        "A sector is 32 bytes. A request is one warp instruction. If 32 lanes store adjacent 4-byte values, they"
        " touch 4 sectors. With gaps of 4 bytes between the values, they touch 8 sectors. A probe counts the same"
        " values as ncu and needs no permission for counters.",
        "A kernel that writes a tensor once stores at least elements × bytes / 32 sectors (the expected number), and"
        " at most one sector per element. The critical kernel is the kernel that uses the tensor cores. If several"
        " kernels use the tensor cores, the critical kernel is the kernel that stores the tensor. The answer shows"
        " the selection steps.",
        "The data type of a kernel follows from the operands of its tensor core operations, from the counted"
        " instructions, or from its name. Files PROGRAM-ncu.csv and traces PROGRAM-probes are compared side by side."
        " For your own tensor: tui-probe import ncu FILE.csv --page critical --seq-len N --head-dim N --dtype bf16.",
    ),
    open=answer,
    collect=collect,
)

"""Memory traffic of programs that compute the same, by the counters of Nsight Compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.charts import Bar, BarChart
from tui_probe.errors import ImportFileError
from tui_probe.evals.answer import Answer, Table
from tui_probe.evals.evaluation import (
    PROGRAMS_PLACEHOLDER,
    PYTHON_PLACEHOLDER,
    Collection,
    Evaluation,
    nothing_measured_error,
)
from tui_probe.nsight.analysis.launch_selection import AUTOMATIC, IterationPlan
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.pages.memory_pages import traffic_page
from tui_probe.nsight.pages.ncu_pages import NcuReport, kernels_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.draw.table import Column
    from tui_probe.draw.view import Progress
    from tui_probe.evals.evaluation import Setting
    from tui_probe.evals.inputs import EvaluationInput
    from tui_probe.nsight.analysis.launch_means import Level
    from tui_probe.nsight.pages.memory_pages import TrafficRow

IMPLEMENTATIONS: Final = ("flash", "efficient", "math", "triton", "bigbird_torch", "bigbird_triton")
SPARSE_IMPLEMENTATIONS: Final = ("bigbird_torch", "bigbird_triton")
"""Programs with block-sparse attention, which are compared with each other only."""
WARM_UP, RUNS = 3, 5
"""Calls of the programs."""
_METRICS: Final = "dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum,gpu__time_duration.sum"
NAME: Final = "traffic"
_SPARSE: Final = "sparse"
_LEVELS: Final[dict[Level, str]] = {"dram": "DRAM", "l2": "L2", "l1": "L1"}


def collect(setting: Setting) -> list[Collection]:
    """A table of ncu for each implementation; the simulated GPU has no counters."""
    return [
        Collection(
            name, (PYTHON_PLACEHOLDER, f"{PROGRAMS_PLACEHOLDER}/attentions.py", name), ("--ncu", _METRICS),
            modules=("torch", "triton"), tools=("ncu",), gpu=True, output_kind="ncu",
        )
        for name in (IMPLEMENTATIONS[:1] if setting.simulated else IMPLEMENTATIONS)
    ]  # fmt: skip


def answer(inputs: Sequence[EvaluationInput], progress: Progress) -> Answer:
    """A row for each program. TraceError where no file of ncu has bytes."""
    progress(0.0)
    files = [item.path for item in inputs if item.trace is None]
    notes = [f"{item.path}: a trace has no memory counters; pass files from ncu" for item in inputs if item.trace]
    if not files:
        raise nothing_measured_error(NAME, notes)
    try:
        groups = [_program_group(name, paths) for name, paths in group_files(files).items()]
    except ImportFileError as error:
        raise nothing_measured_error(NAME, [str(error)]) from error
    rows = [row for group in groups for row in group.rows]
    group_notes = list(dict.fromkeys(note for group in groups for note in group.notes))
    if not any(value is not None for row in rows for value in row.traffic.bytes.values()):
        raise nothing_measured_error(NAME, [*group_notes, "no kernel has a metric of DRAM, L2 or L1 traffic"])
    return Answer(
        said=[*(text for program in groups for text in _sentences(program, len(groups))), *_group_findings(groups)],
        tables={
            **{program.table: Table(program.title, program.columns, program.rows) for program in groups},
            "kernels": _kernels_table(groups),
        },
        drawings={level: _chart(level, rows) for level in _LEVELS},
        notes=[*notes, *group_notes],
    )


@dataclass(frozen=True, slots=True)
class ProgramGroup:
    """Programs that compute the same: "of best" is of the best among them. ``name`` is "" where there is one group."""

    name: str
    report: NcuReport
    columns: Sequence[Column[TrafficRow]]
    rows: Sequence[TrafficRow]
    findings: Sequence[str]
    notes: Sequence[str]

    @property
    def table(self) -> str:
        return f"{NAME}_{self.name}" if self.name == _SPARSE else NAME

    @property
    def title(self) -> str:
        return f"memory traffic per call, {self.name} attention" if self.name else "memory traffic per call"


def group_files(files: Sequence[Path]) -> dict[str, list[Path]]:
    """Sparse attention apart from the rest, which computes more; one group where there is only one of the two."""
    sparse = [path for path in files if path.stem in SPARSE_IMPLEMENTATIONS]
    dense = [path for path in files if path not in sparse]
    if not sparse or not dense:
        return {"": list(files)}
    return {"dense": dense, _SPARSE: sparse}


def _program_group(name: str, paths: Sequence[Path]) -> ProgramGroup:
    """ImportFileError for what is not a file of ncu."""
    report = NcuReport(read_ncu(paths), plan_for([path.stem for path in paths]))
    page = traffic_page(report)
    return ProgramGroup(name, report, page.columns, page.rows, page.texts.findings, page.texts.notes)


def _group_findings(groups: Sequence[ProgramGroup]) -> list[str]:
    return [text for group in groups for text in group.findings]


def _kernels_table(groups: Sequence[ProgramGroup]) -> Table[Any]:
    pages = [kernels_page(group.report) for group in groups]
    rows = [row for page in pages for row in page.rows]
    return Table("all kernels, and whether their traffic is included", pages[0].columns, rows, in_text=False)


def plan_for(names: Sequence[str]) -> IterationPlan:
    """Our own programs make as many calls as is known; of others it is found in the launches."""
    return IterationPlan(WARM_UP, RUNS, ()) if all(name in IMPLEMENTATIONS for name in names) else AUTOMATIC


def _sentences(group: ProgramGroup, groups: int) -> Iterator[str]:
    """Yield, per level, the program that moves least, and the one that moves most."""
    prefix = f"{group.name} attention, " if groups > 1 else ""
    for level, title in _LEVELS.items():
        bytes_by_program = {
            row.program: moved_bytes for row in group.rows if (moved_bytes := row.traffic.bytes[level]) is not None
        }
        if len(bytes_by_program) < 2:
            continue
        best, worst = (
            min(bytes_by_program, key=bytes_by_program.__getitem__),
            max(bytes_by_program, key=bytes_by_program.__getitem__),
        )
        times = f" ({bytes_by_program[worst] / bytes_by_program[best]:.2f}× as much)" if bytes_by_program[best] else ""
        yield f"{prefix}{title}: min {best} ({units.size(bytes_by_program[best])} per call), max {worst}{times}"


def _chart(level: Level, rows: Sequence[TrafficRow]) -> BarChart:
    bars = [Bar(row.program, (row.traffic.bytes[level],)) for row in rows]
    return BarChart(f"{_LEVELS[level]} traffic per call", bars, (_LEVELS[level],), "bytes", units.size)


EVALUATION: Final = Evaluation(
    name="traffic",
    question="how many bytes do different implementations move through DRAM, L2 and L1?",
    probes=(),
    reading=(
        "Bytes are per call, averaged over the measured calls. Only kernels that run in every call are included,"
        " without the warm-up. Repeated kernels are found in the launch sequence and need not be named.",
        "Counters need ncu and permission; a file from another machine also works: tui-probe eval traffic A.csv"
        " B.csv. ncu flushes caches before each kernel, so reuse of L2 data between kernels is not visible.",
        "Block-sparse attention (bigbird) computes less than the other kinds, and has its own table. “of best”"
        " compares with the best of the same table. Figures show all kinds.",
    ),
    open=answer,
    collect=collect,
)

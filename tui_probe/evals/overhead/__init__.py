"""Evaluation of probe cost: slowdown and added registers of any kernels with any probes, from a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.charts import Bar, BarChart
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import UsageError
from tui_probe.evals.answer import Answer, Table, compare_published
from tui_probe.evals.evaluation import (
    PROGRAMS_PLACEHOLDER,
    PYTHON_PLACEHOLDER,
    Collection,
    Evaluation,
    nothing_measured_error,
)

from .costs import (
    PUBLISHED_STUDY,
    SMALL_STUDY,
    SUFFIX,
    Cost,
    Study,
    StudyKernel,
    average,
    own_studies,
    read_costs,
    read_study,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.evals.evaluation import Setting
    from tui_probe.evals.inputs import EvaluationInput

_BENCHMARK: Final = ("--benchmark", "--launches", "all", "--exclude", "distribution:copy", "--no-times", "--no-source",
                     "--max-trace-bytes", "256M", "--max-log-bytes", "4M")  # fmt: skip
_SIMULATED: Final = Study(
    (
        StudyKernel(
            "fill",
            (
                PYTHON_PLACEHOLDER,
                f"{PROGRAMS_PLACEHOLDER}/fill.py",
                "--elements",
                "16384",
                "--driver-only",
                "--times",
                "0",
                "plain",
            ),
        ),
    ),
    ("block_sched", "gmem_bytes"),
)
NAME: Final = "overhead"
_HEAVY: Final = ("dmat",)
"""Probes that record every access; the published means of light ones are without them."""


def collect(setting: Setting) -> list[Collection]:
    """A trace for each run, probe and repeat, named ``RUN.PROBE.REPEAT``. The first repeat of all comes first."""
    study = studied(setting)
    return [
        _collection(rows, probe, repeat)
        for repeat in range(1, study.repeats + 1)
        for rows in study.runs()
        for probe in study.probes
    ]


def studied(setting: Setting) -> Study:
    """The study that was named, else the small one. UsageError for several."""
    if len(setting.files) > 1:
        raise UsageError(f"{setting.files[1]}: pass only one study")
    if setting.files:
        return read_study(setting.files[0])
    return _SIMULATED if setting.simulated else read_study(SMALL_STUDY)


def _collection(rows: Sequence[StudyKernel], probe: str, repeat: int) -> Collection:
    main_row = rows[0]
    kernels = ":".join(dict.fromkeys(row.kernel for row in rows))
    selection = ("-k", kernels) if kernels else ()
    name = f"{main_row.key}.{probe.replace('/', '_')}.{repeat}"
    modules = tuple(dict.fromkeys(word for row in rows for word in row.modules))
    tools = tuple(dict.fromkeys(word for row in rows for word in row.tools))
    return Collection(name, main_row.command, ("-p", probe, *selection, *_BENCHMARK), modules, tools)


def answer(inputs: Sequence[EvaluationInput], progress: Progress) -> Answer:
    """The costs in the order of the study that was named, else of the own ones. TraceError if there are none."""
    studies = [item for item in inputs if item.trace is None and item.path.suffix == SUFFIX]
    study = read_study(studies[0].path) if studies else own_studies()
    costs, notes = read_costs([item for item in inputs if item not in studies], study, progress)
    if not any(cost.registers_probed is not None for cost in costs):
        raise nothing_measured_error(NAME, [*notes, *(_error_text(cost) for cost in costs)] or ["no trace was named"])
    probes = list(dict.fromkeys(cost.probe for cost in costs))
    probe_means = [_probe_mean(probe, [cost for cost in costs if cost.probe == probe]) for probe in probes]
    lines = _costs_by_kernel(costs)
    spilling = [cost for cost in costs if cost.spills_more]
    return Answer(
        said=[mean.text() for mean in probe_means],
        tables={
            "overhead": Table(
                "slowdown and added registers (s: more spills than the original)", _wide_columns(probes), lines
            ),
            **(
                {"spills": Table("rows with more spills than the original", _COST_COLUMNS, spilling)}
                if spilling
                else {}
            ),
            "means": Table("means over kernels", _MEAN_COLUMNS, probe_means),
            "costs": Table("one row per kernel and probe", _COST_COLUMNS, costs, in_text=False),
        },
        drawings={"slowdowns": _chart(costs)},
        compared=compare_published(NAME, **_ours(costs)),
        notes=[*notes, *(_error_text(cost) for cost in costs if cost.reason)],
    )


def _error_text(cost: Cost) -> str:
    return f"{cost.row.name}, {cost.probe}: {cost.reason}"


def _ours(costs: Sequence[Cost]) -> dict[str, float | None]:
    """Return the means over kernels that the published table has, too: means over others do not compare."""
    published = {row.name for row in read_study(PUBLISHED_STUDY).rows}
    published_costs = [cost for cost in costs if cost.row.name in published]
    light = [cost for cost in published_costs if cost.probe not in _HEAVY]
    heavy = [cost for cost in published_costs if cost.probe in _HEAVY]
    return {
        "light_slowdown": average(light, lambda c: c.slowdown),
        "light_registers": average(light, lambda c: c.added),
        "dmat_slowdown": average(heavy, lambda c: c.slowdown),
    }


# -- the table: a row per kernel, two columns per probe


@dataclass(frozen=True, slots=True)
class KernelCosts:
    """A kernel with all its probes."""

    group: str
    name: str
    costs: dict[str, Cost]

    @property
    def registers(self) -> int | None:
        return next((cost.registers for cost in self.costs.values() if cost.registers is not None), None)

    @property
    def time_ms(self) -> float | None:
        return average(self.costs.values(), lambda c: c.time_ms)

    def slowdown(self, probe: str) -> float | None:
        return self.costs[probe].slowdown if probe in self.costs else None

    def added(self, probe: str) -> int | None:
        return self.costs[probe].added if probe in self.costs else None

    def slowdown_text(self, probe: str) -> str:
        """``1.04×``, with an s where the probe makes the kernel spill."""
        cost = self.costs.get(probe)
        return NOT_MEASURED if cost is None else f"{units.ratio(cost.slowdown)}{' s' if cost.spills_more else ''}"


def _costs_by_kernel(costs: Sequence[Cost]) -> list[KernelCosts]:
    lines: dict[str, KernelCosts] = {}
    for cost in costs:
        lines.setdefault(cost.row.name, KernelCosts(cost.row.group, cost.row.name, {})).costs[cost.probe] = cost
    return list(lines.values())


def _wide_columns(probes: Sequence[str]) -> tuple[Column[KernelCosts], ...]:
    return (
        Column("group", lambda r: r.group, "of", lambda r: r.group or NOT_MEASURED, right=False, narrow=7),
        Column("kernel", lambda r: r.name, "kernel", lambda r: r.name, right=False, narrow=12, shorten=shorten),
        Column("time_ms", lambda r: r.time_ms, "ms", lambda r: _number(r.time_ms, 3), rank=2),
        Column("registers", lambda r: r.registers, "reg", lambda r: _count_text(r.registers)),
        *(column for probe in probes for column in _columns_of_probe(probe)),
    )


def _columns_of_probe(probe: str) -> tuple[Column[KernelCosts], Column[KernelCosts]]:
    return (
        Column(f"{probe}_slowdown", lambda r: r.slowdown(probe), probe, lambda r: r.slowdown_text(probe)),
        Column(f"{probe}_added", lambda r: r.added(probe), "+reg", lambda r: _added_text(r.added(probe))),
    )


_COST_COLUMNS: Final[tuple[Column[Cost], ...]] = (
    Column("group", lambda r: r.row.group),
    Column("kernel", lambda r: r.row.name, "kernel", lambda r: r.row.name, right=False),
    Column("probe", lambda r: r.probe, "probe", lambda r: r.probe, right=False),
    Column("repeats", lambda r: len(r.slowdowns), "repeats", lambda r: str(len(r.slowdowns)), rank=2),
    Column("time_ms", lambda r: r.time_ms),
    Column("slowdown", lambda r: r.slowdown, "slowdown", lambda r: units.ratio(r.slowdown)),
    Column("least", lambda r: min(r.slowdowns, default=None)),
    Column("most", lambda r: max(r.slowdowns, default=None)),
    Column("spread", lambda r: r.spread, "spread", lambda r: units.percentage(r.spread), rank=1),
    Column("registers", lambda r: r.registers, "registers", lambda r: _count_text(r.registers)),
    Column("added", lambda r: r.added, "added", lambda r: _added_text(r.added)),
    Column("spills", lambda r: r.spills, "spilled bytes", lambda r: _count_text(r.spills)),
    Column("spills_probed", lambda r: r.spills_probed, "probed", lambda r: _count_text(r.spills_probed)),
)


# -- means


@dataclass(frozen=True, slots=True)
class Mean:
    """Means of a probe over all kernels, and over those that do not spill more with it."""

    probe: str
    costs: tuple[Cost, ...]

    @property
    def unspilled(self) -> list[Cost]:
        return [cost for cost in self.costs if not cost.spills_more]

    @property
    def spread(self) -> float | None:
        """The largest spread of a kernel."""
        return max((cost.spread for cost in self.costs if cost.spread is not None), default=None)

    def text(self) -> str:
        """Return the sentence of the answer."""
        text = (
            f"{self.probe}: {units.ratio(average(self.costs, _slowdown))} and"
            f" {_mean_added_text(average(self.costs, _registers))} registers,"
            f" mean of {units.counted(len(self.costs), 'kernel')}"
        )
        if len(self.unspilled) < len(self.costs):
            text += (
                f"; without the {len(self.costs) - len(self.unspilled)} that spill:"
                f" {units.ratio(average(self.unspilled, _slowdown))} and"
                f" {_mean_added_text(average(self.unspilled, _registers))} registers"
            )
        return text


def _probe_mean(probe: str, costs: Sequence[Cost]) -> Mean:
    return Mean(probe, tuple(cost for cost in costs if cost.registers_probed is not None))


def _slowdown(cost: Cost) -> float | None:
    return cost.slowdown


def _registers(cost: Cost) -> float | None:
    return cost.added


_MEAN_COLUMNS: Final[tuple[Column[Mean], ...]] = (
    Column("probe", lambda r: r.probe, "probe", lambda r: r.probe, right=False),
    Column("kernels", lambda r: len(r.costs), "kernels", lambda r: str(len(r.costs))),
    Column(
        "spilling",
        lambda r: len(r.costs) - len(r.unspilled),
        "that spill",
        lambda r: str(len(r.costs) - len(r.unspilled)),
    ),
    Column(
        "slowdown",
        lambda r: average(r.costs, _slowdown),
        "slowdown",
        lambda r: units.ratio(average(r.costs, _slowdown)),
    ),
    Column(
        "slowdown_calm",
        lambda r: average(r.unspilled, _slowdown),
        "without",
        lambda r: units.ratio(average(r.unspilled, _slowdown)),
    ),
    Column(
        "added",
        lambda r: average(r.costs, _registers),
        "registers",
        lambda r: _mean_added_text(average(r.costs, _registers)),
    ),
    Column(
        "added_calm",
        lambda r: average(r.unspilled, _registers),
        "without",
        lambda r: _mean_added_text(average(r.unspilled, _registers)),
    ),
    Column("spread", lambda r: r.spread, "largest spread", lambda r: units.percentage(r.spread), rank=1),
)


# -- the figure


def _chart(costs: Sequence[Cost]) -> BarChart:
    bars = [
        Bar(f"{cost.row.name} {cost.probe}", (cost.slowdown,), units.ratio(cost.slowdown), _range_of_slowdowns(cost))
        for cost in costs
    ]
    return BarChart("slowdown of probed kernels", bars, ("probed time / original time",), "times", units.ratio)


def _range_of_slowdowns(cost: Cost) -> tuple[float, float] | None:
    return (min(cost.slowdowns), max(cost.slowdowns)) if len(cost.slowdowns) > 1 else None


def _number(value: float | None, places: int) -> str:
    return NOT_MEASURED if value is None else f"{value:.{places}f}"


def _count_text(value: int | None) -> str:
    return NOT_MEASURED if value is None else str(value)


def _added_text(value: int | None) -> str:
    return NOT_MEASURED if value is None else f"{value:+d}"


def _mean_added_text(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:+.2f}"


EVALUATION: Final = Evaluation(
    name="overhead",
    question="how much does a probe slow kernels down, and how many registers does it add?",
    probes=("block_sched", "tensorop_count", "gmem_bytes", "dmat"),
    reading=(
        "Slowdown is probed time / original time. For each run, slowdown is the median of five pairs of launches."
        " The table shows the median over the runs. The spread is (max - min) / median over the runs. Added"
        " registers are the registers per thread of the probed kernel minus the registers per thread of the original"
        " kernel; the assembler reports both numbers. A row for several kernels shows the kernel with the longest"
        " time.",
        "If a probed kernel has no free registers, it spills: its slowdown is due to memory and not to the probe's"
        " instructions. Rows with spills are marked and listed. Means are given with and without the rows with"
        " spills.",
        "A study is a TOML file with probes, repeats, and [[kernel]] tables. Each table has a name, group, kernel (a"
        " part of the kernel's name), command, and the required modules and tools. Kernels of one run are measured"
        " together. The default study is small and has four kernels; published.study.toml has all kernels of the"
        " published table. To run your own study: tui-probe eval overhead study.toml --run. To show the results"
        " again, pass the study and the directory of the results.",
    ),
    open=answer,
    collect=collect,
)

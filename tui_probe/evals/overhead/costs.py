"""Cost of each probe for each kernel of a study, from repeated traces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.printable import printable
from tui_probe.errors import TraceError
from tui_probe.input_limits import PROBE_FILE, parse_toml
from tui_probe.probekit.recognised import analysis_name
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.evals.inputs import EvaluationInput
    from tui_probe.trace.model import Kernel

PUBLISHED_STUDY: Final = Path(__file__).with_name("published.study.toml")
SMALL_STUDY: Final = Path(__file__).with_name("small.study.toml")
SUFFIX: Final = ".toml"
_MAX_REPEATS: Final = 100
_STUDY_FORM: Final = (
    'probes = ["block_sched"], and a table [[kernel]] with the keys name and command for each row.'
    " Optional keys: repeats (default 1); in a table, kernel (a part of the kernel's name)"
)


@dataclass(frozen=True, slots=True)
class StudyKernel:
    """A row of the table. ``kernel`` is a part of the kernel's name, ``A:B`` either; "" any of the program.

    Rows of one ``run`` are measured together, in one run of the program that all of them name.
    """

    name: str
    command: tuple[str, ...]
    kernel: str = ""
    group: str = ""
    modules: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    run: str = ""

    @property
    def key(self) -> str:
        """Part of the names of its traces."""
        return re.sub(r"[^A-Za-z0-9]+", "_", self.run or self.name)


@dataclass(frozen=True, slots=True)
class Study:
    """The rows in their order, the probes, and how often each is measured."""

    rows: tuple[StudyKernel, ...]
    probes: tuple[str, ...]
    repeats: int = 1

    def runs(self) -> list[list[StudyKernel]]:
        """The rows that one run measures, in their order."""
        by_key: dict[str, list[StudyKernel]] = {}
        for row in self.rows:
            by_key.setdefault(row.key, []).append(row)
        return list(by_key.values())


def own_studies() -> Study:
    """The rows of those that come with the package, to know their traces by name."""
    small_study, published_study = read_study(SMALL_STUDY), read_study(PUBLISHED_STUDY)
    return Study((*small_study.rows, *published_study.rows), published_study.probes)


def read_study(path: Path) -> Study:
    """Raise TraceError, with the file's name and what is wrong, for one that is not a study."""
    try:
        study = _parse_study(parse_toml(read_within(path, PROBE_FILE).decode("utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise TraceError(f"{path} is not a study: {problem}. A study has {_STUDY_FORM}") from error
    return study


def _parse_study(data: dict[str, Any]) -> Study:
    rows = data["kernel"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("“kernel” is not a list of tables: write [[kernel]]")
    study = Study(tuple(map(_study_kernel, rows)), _texts(data, "probes"), data.get("repeats", 1))
    names = [re.sub(r"[^A-Za-z0-9]+", "_", row.name) for row in study.rows]
    duplicate = next((row.name for row, name in zip(study.rows, names, strict=True) if names.count(name) > 1), None)
    if duplicate is not None:
        raise ValueError(f"two kernels are named {duplicate}")
    for of_run in study.runs():
        _check_run(of_run)
    if not isinstance(study.repeats, int) or not 1 <= study.repeats <= _MAX_REPEATS:
        raise ValueError(f"“repeats” is {study.repeats!r}, not a number from 1 to {_MAX_REPEATS}")
    if not study.rows or not study.probes:
        raise ValueError("“kernel” or “probes” is missing")
    return study


def _check_run(rows: list[StudyKernel]) -> None:
    """ValueError where rows of one run could not be distinguished, or are of different programs."""
    main_row = rows[0]
    for row in rows[1:]:
        if not (row.run and main_row.run):
            raise ValueError(f"{row.name} and {main_row.name} have the same run name")
        if row.command != main_row.command:
            raise ValueError(f"{row.name} and {main_row.name} are in the run {row.run} but have different commands")
    if len(rows) > 1 and not all(row.kernel for row in rows):
        raise ValueError(
            f"the run {main_row.run} has several kernels: each of them needs the key “kernel”, a part of the kernel's"
            " name"
        )


def _study_kernel(data: dict[str, Any]) -> StudyKernel:
    unknown = data.keys() - {"name", "command", "kernel", "group", "modules", "tools", "run"}
    if unknown:
        raise ValueError(f"a kernel has unknown keys: {', '.join(sorted(unknown))}")
    name, kernel, group, run = (_text(data, key) for key in ("name", "kernel", "group", "run"))
    command, modules, tools = (_texts(data, key) for key in ("command", "modules", "tools"))
    if not name or not command:
        raise ValueError("a [[kernel]] needs a name and a command")
    return StudyKernel(name, command, kernel, group, modules, tools, run)


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise TypeError(f"{key} is {value!r}, not a string")
    return value


def _texts(data: dict[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TypeError(f"{key} is {value!r}, not a list of strings")
    return tuple(value)


@dataclass(frozen=True, slots=True)
class Cost:
    """A probe in a kernel. ``slowdowns`` has one for each repeat; ``reason`` says why something was not measured."""

    row: StudyKernel
    probe: str
    kernel: str
    slowdowns: tuple[float, ...] = ()
    times_ms: tuple[float, ...] = ()
    """Times of the original kernel."""
    registers: int | None = None
    registers_probed: int | None = None
    spills: int | None = None
    spills_probed: int | None = None
    reason: str | None = None

    @property
    def slowdown(self) -> float | None:
        """The median of the repeats."""
        return median(self.slowdowns) if self.slowdowns else None

    @property
    def spread(self) -> float | None:
        """(most - least) / median of the repeats; None of a single one."""
        minimum, maximum = min(self.slowdowns, default=0.0), max(self.slowdowns, default=0.0)
        return (maximum - minimum) / median(self.slowdowns) if len(self.slowdowns) > 1 else None

    @property
    def time_ms(self) -> float | None:
        return median(self.times_ms) if self.times_ms else None

    @property
    def added(self) -> int | None:
        """Registers that the probe adds to a thread."""
        is_measured = self.registers is not None and self.registers_probed is not None
        return (self.registers_probed or 0) - (self.registers or 0) if is_measured else None

    @property
    def spills_more(self) -> bool:
        """True if the probed kernel spills more than the original."""
        return (self.spills_probed or 0) > (self.spills or 0)


def read_costs(inputs: Sequence[EvaluationInput], study: Study, progress: Progress) -> tuple[list[Cost], list[str]]:
    """A cost for each kernel and probe of the traces, in the order of the study, and why others are left out.

    Traces that are not named as a study's are rows of their own, named by their kernel.
    """
    by_probe: dict[tuple[str, str], list[Cost]] = {}
    notes = []
    for place, source in enumerate(inputs):
        progress(place / len(inputs))
        for row in _kernels_of_trace(source, study):
            cost = _cost(source, row)
            if isinstance(cost, str):
                notes.append(cost)
            else:
                by_probe.setdefault((cost.row.name, cost.probe), []).append(cost)
    order = {row.name: place for place, row in reversed(list(enumerate(study.rows)))}
    costs = [_cost_of_repeats(repeats) for repeats in by_probe.values()]
    return sorted(costs, key=lambda cost: order.get(cost.row.name, len(order))), notes


def _kernels_of_trace(source: EvaluationInput, study: Study) -> Sequence[StudyKernel | None]:
    """The rows that a trace is of, by its name; None stands for one that the study does not know."""
    return [row for row in study.rows if source.label.startswith(f"{row.key}.")] or [None]


def _cost(source: EvaluationInput, row: StudyKernel | None) -> Cost | str:
    """Return the cost of the longest of the selected kernels, or the reason why there is none."""
    trace = source.trace
    if trace is None:
        return f"{source.path} is not a trace"
    candidates = [candidate for candidate in source.kernels if row is None or is_studied(row, candidate)]
    kernels = [candidate for candidate in candidates if candidate.status == "probed"]
    probe = None if trace.run_info is None else trace.run_info.probe
    if not kernels:
        reasons = (
            "; ".join(dict.fromkeys(candidate.reason or candidate.status for candidate in candidates))
            or "the kernel was not launched"
        )
        if row is None or probe is None:
            return f"{source.path}: no kernel was probed: {reasons}"
        return Cost(row, probe, "", reason=reasons)
    kernel = max(kernels, key=lambda candidate: candidate.time_ms or 0.0)
    row = row or StudyKernel(printable(kernel.demangled), ("?",))
    return _cost_of_kernel(row, probe or analysis_name(kernel) or "?", kernel)


def is_studied(row: StudyKernel, kernel: Kernel) -> bool:
    """Return True if a kernel's name contains one of the row's names."""
    return not row.kernel or any(part in kernel.name for part in row.kernel.split(":"))


def _cost_of_kernel(row: StudyKernel, probe: str, kernel: Kernel) -> Cost:
    slowdown = None if kernel.trace.state.simulated else kernel.slowdown
    time_ms = None if kernel.trace.state.simulated else kernel.time_ms
    cause = (
        "the simulated GPU has no times" if kernel.trace.state.simulated else kernel.reason or "run with --benchmark"
    )
    return Cost(
        row, probe, kernel.name, () if slowdown is None else (slowdown,), () if time_ms is None else (time_ms,),
        kernel.registers_pruned, kernel.registers_probed, kernel.spills_pruned, kernel.spills_probed,
        f"not timed: {cause}" if slowdown is None else None,
    )  # fmt: skip


def _cost_of_repeats(repeats: Sequence[Cost]) -> Cost:
    """The repeats of one cost. Registers are the same in all of them."""
    main_repeat = next((repeat for repeat in repeats if repeat.registers_probed is not None), repeats[0])
    return Cost(
        main_repeat.row, main_repeat.probe, main_repeat.kernel,
        tuple(value for repeat in repeats for value in repeat.slowdowns),
        tuple(value for repeat in repeats for value in repeat.times_ms),
        main_repeat.registers, main_repeat.registers_probed, main_repeat.spills, main_repeat.spills_probed,
        next((repeat.reason for repeat in repeats if repeat.reason), None),
    )  # fmt: skip


def average(costs: Iterable[Cost], figure: Callable[[Cost], float | None]) -> float | None:
    """The mean of what was measured; None if nothing was."""
    values = [value for cost in costs if (value := figure(cost)) is not None]
    return mean(values) if values else None

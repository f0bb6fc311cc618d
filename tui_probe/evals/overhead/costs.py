"""What a probe costs a kernel, from the traces of its repeats."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean, median
from typing import TYPE_CHECKING

from tui_probe.draw.table import safe
from tui_probe.probekit.probe_results import probe_of

from .study import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.evals.given import Given
    from tui_probe.trace.model import Kernel

    from .study import Study


@dataclass(frozen=True, slots=True)
class Cost:
    """A probe in a kernel. ``slowdowns`` has one for each repeat; ``reason`` says why something was not measured."""

    row: Row
    probe: str
    kernel: str
    slowdowns: tuple[float, ...] = ()
    times_ms: tuple[float, ...] = ()
    """Of the original."""
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
        low, high = min(self.slowdowns, default=0.0), max(self.slowdowns, default=0.0)
        return (high - low) / median(self.slowdowns) if len(self.slowdowns) > 1 else None

    @property
    def time_ms(self) -> float | None:
        return median(self.times_ms) if self.times_ms else None

    @property
    def added(self) -> int | None:
        """Registers that the probe adds to a thread."""
        known = self.registers is not None and self.registers_probed is not None
        return (self.registers_probed or 0) - (self.registers or 0) if known else None

    @property
    def spills_more(self) -> bool:
        """Whether the probed kernel spills and the original spills less."""
        return (self.spills_probed or 0) > (self.spills or 0)


def costs_of(given: Sequence[Given], study: Study, progress: Progress) -> tuple[list[Cost], list[str]]:
    """A cost for each kernel and probe of the traces, in the order of the study, and why others are left out.

    Traces that are not named as a study's are rows of their own, named by their kernel.
    """
    found: dict[tuple[str, str], list[Cost]] = {}
    notes = []
    for place, one in enumerate(given):
        progress(place / len(given))
        for row in _rows(one, study):
            cost = _cost(one, row)
            if isinstance(cost, str):
                notes.append(cost)
            else:
                found.setdefault((cost.row.name, cost.probe), []).append(cost)
    order = {row.name: place for place, row in reversed(list(enumerate(study.rows)))}
    costs = [_together(each) for each in found.values()]
    return sorted(costs, key=lambda cost: order.get(cost.row.name, len(order))), notes


def _rows(given: Given, study: Study) -> Sequence[Row | None]:
    """The rows that a trace is of, by its name; None stands for one that the study does not know."""
    return [row for row in study.rows if given.label.startswith(f"{row.key}.")] or [None]


def _cost(given: Given, row: Row | None) -> Cost | str:
    """That of the kernel that takes longest of those that are meant; or why there is none."""
    trace = given.trace
    if trace is None:
        return f"{given.path}: it is no trace"
    meant = [one for one in given.kernels if row is None or is_meant(row, one)]
    probed = [one for one in meant if one.status == "probed"]
    told = None if trace.run_info is None else trace.run_info.probe
    if not probed:
        reasons = "; ".join(dict.fromkeys(one.reason or one.status for one in meant)) or "it was not launched"
        if row is None or told is None:
            return f"{given.path}: no kernel was probed: {reasons}"
        return Cost(row, told, "", reason=reasons)
    kernel = max(probed, key=lambda one: one.time_ms or 0.0)
    row = row or Row(safe(kernel.demangled), ("?",))
    return _measured(row, told or probe_of(kernel) or "?", kernel)


def is_meant(row: Row, kernel: Kernel) -> bool:
    """Whether a kernel's name has one of the parts that the row names."""
    return not row.kernel or any(part in kernel.name for part in row.kernel.split(":"))


def _measured(row: Row, probe: str, kernel: Kernel) -> Cost:
    timed = None if kernel.trace.state.simulated else kernel.slowdown
    time_ms = None if kernel.trace.state.simulated else kernel.time_ms
    why = "the simulated GPU has no times" if kernel.trace.state.simulated else kernel.reason or "run with --benchmark"
    return Cost(
        row, probe, kernel.name, () if timed is None else (timed,), () if time_ms is None else (time_ms,),
        kernel.registers_pruned, kernel.registers_probed, kernel.spills_pruned, kernel.spills_probed,
        f"not timed: {why}" if timed is None else None,
    )  # fmt: skip


def _together(repeats: Sequence[Cost]) -> Cost:
    """The repeats of one cost. Registers are the same in all of them."""
    first = next((one for one in repeats if one.registers_probed is not None), repeats[0])
    return Cost(
        first.row, first.probe, first.kernel,
        tuple(value for one in repeats for value in one.slowdowns),
        tuple(value for one in repeats for value in one.times_ms),
        first.registers, first.registers_probed, first.spills, first.spills_probed,
        next((one.reason for one in repeats if one.reason), None),
    )  # fmt: skip


def average(costs: Iterable[Cost], figure: Callable[[Cost], float | None]) -> float | None:
    """The mean of what was measured; None if nothing was."""
    known = [value for cost in costs if (value := figure(cost)) is not None]
    return mean(known) if known else None

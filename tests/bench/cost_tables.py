"""Tables of what probes cost: one row per kernel, ours next to naive, and means with and without the rows that
spill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import mean

from tests.bench.workloads import TILED

NONE = "–"
CONTROL = "control"
"""A probe that does nothing: its slowdown is that of the assembler, not of a probe."""


@dataclass(frozen=True)
class Cost:
    """Cost of one probe in one kernel. Unmeasured values are None, and ``reason`` says why."""

    kernel: str
    probe: str
    naive: bool
    reason: str = ""
    registers: int | None = None
    registers_probed: int | None = None
    spills: int | None = None
    spills_probed: int | None = None
    slowdown: float | None = None
    time_ms: float | None = None

    @property
    def added(self) -> int | None:
        """Registers that the probe adds to a thread."""
        if self.registers is None or self.registers_probed is None:
            return None
        return self.registers_probed - self.registers

    @property
    def spills_more(self) -> bool:
        """Tell whether the probed kernel spills and the original spills less."""
        return (self.spills_probed or 0) > (self.spills or 0)


def beyond_control(cost: Cost, costs: Iterable[Cost]) -> float | None:
    """The slowdown over that of the same kernel with a probe that does nothing."""
    control = next((c.slowdown for c in costs if c.probe == CONTROL and c.kernel == cost.kernel), None)
    return None if cost.slowdown is None or not control else cost.slowdown / control


def tables(costs: list[Cost], *, timed: bool) -> list[str]:
    """Markdown: one table per probe, then one of means."""
    probes = list(dict.fromkeys(cost.probe for cost in costs))
    return [*(probe_table(probe, costs, timed=timed) for probe in probes), means_table(probes, costs, timed=timed)]


def probe_table(probe: str, costs: list[Cost], *, timed: bool) -> str:
    """One probe: kernels as rows, ours and naive side by side."""
    naive = {cost.kernel: cost for cost in costs if cost.probe == probe and cost.naive}
    rows = []
    for cost in costs:
        if cost.probe == probe and not cost.naive:
            other = naive.get(cost.kernel, Cost(cost.kernel, probe, True))
            cells = [cost.kernel, text(cost.registers), signed(cost.added), signed(other.added)]
            cells += [text(cost.spills_probed), text(other.spills_probed)]
            beyond = beyond_control(cost, costs)
            times = [number(cost.time_ms, 3), number(cost.slowdown), number(beyond), number(other.slowdown)]
            cells += times if timed else []
            rows.append([*cells, cost.reason or (other.reason and f"naive: {other.reason}")])
    head = ["kernel", "registers", "added", "naive", "spilled bytes", "naive"]
    head += ["time ms", "slowdown", "beyond control", "naive"] if timed else []
    return f"### {probe}\n\n{markdown([*head, ''], rows)}"


def means_table(probes: list[str], costs: list[Cost], *, timed: bool) -> str:
    """Means over the kernels of the published table, with and without rows in which the probe makes a kernel spill."""
    rows = []
    for probe in probes:
        for naive in (False, True):
            listed = [c for c in costs if c.probe == probe and c.naive == naive and c.kernel != TILED.name]
            listed = [cost for cost in listed if cost.added is not None]
            if listed:
                calm = [cost for cost in listed if not cost.spills_more]
                cells = [f"{probe}, naive" if naive else probe, str(len(listed)), str(len(listed) - len(calm))]
                cells += [average(listed, lambda c: c.added), average(calm, lambda c: c.added)]
                times = [average(listed, lambda c: c.slowdown), average(calm, lambda c: c.slowdown)]
                times.append(average(listed, lambda c: beyond_control(c, costs)))
                cells += times if timed else []
                rows.append(cells)
    head = ["probe", "kernels", "with more spills", "added registers", "without those"]
    head += ["slowdown", "without those", "beyond control"] if timed else []
    return f"### Means\n\n{markdown(head, rows)}"


def average(costs: Iterable[Cost], part: Callable[[Cost], float | None]) -> str:
    known = [value for cost in costs if (value := part(cost)) is not None]
    return f"{mean(known):.2f}" if known else NONE


def text(value: int | None) -> str:
    return NONE if value is None else str(value)


def signed(value: int | None) -> str:
    return NONE if value is None else f"{value:+d}"


def number(value: float | None, places: int = 2) -> str:
    return NONE if value is None else f"{value:.{places}f}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; columns behind the first are right-aligned, the last of text that explains is not."""
    marks = ["---", *("--:" if name else "---" for name in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, marks, *rows]) + "\n"

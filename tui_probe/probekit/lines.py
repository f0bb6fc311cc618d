"""Measures of single lines of PTX: their declarations, rows, and ranking."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, percent, place, timed
from tui_probe.probekit.metric import Better, require_one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tui_probe.probekit.finding import Evidence
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.records.counter_sums import LineSums
    from tui_probe.trace.source_lines import SourceLine

LineValue = int | float | str | None

CombineRule = Literal["sum", "ratio", "share", "first", "none"]
IDEAL_SECTORS_NOTE: Final = (
    "ideal: minimum number of 32 B sectors for the requested bytes; sectors above it are excessive"
)
"""Note on lines whose sectors are compared with the minimum."""


class ShareValue(float):
    """A share from 0 to 1, which text shows in per cent."""

    @property
    def text(self) -> str:
        """``50%``."""
        return f"{100 * self:.0f}%" if not 0 < self < 0.01 else "<1%"


@dataclass(frozen=True, slots=True)
class LineMeasure:
    """A quantity of a line. If less is ``better``, the line with the largest value is the hotspot.

    ``rule`` combines the lines of PTX of one source line: the sum; the ratio of the sums of two other measures,
    ``parts``, or the same as a ``share`` in per cent; the value of the first; or none. ``title`` is the heading on
    pages; by default it is the name.
    """

    name: str
    rule: CombineRule = "none"
    parts: tuple[str, str] = ("", "")
    better: Better = "lower"
    title: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown ``better`` or ``rule``."""
        require_one_of(Better, self.better, f"`better` of the line measure {self.name}")
        require_one_of(CombineRule, self.rule, f"`rule` of the line measure {self.name}")

    @property
    def heading(self) -> str:
        """The heading of its column."""
        return self.title or self.name

    @property
    def key(self) -> str:
        """Key in JSON and CSV."""
        return self.name.replace(" ", "_")


@dataclass(frozen=True, slots=True)
class LineRow:
    """A line of pruned.ptx (0 for none), its source, and its values by the name of the measure."""

    line: int
    source: SourceLine | None
    values: Mapping[str, LineValue]


@dataclass(frozen=True, slots=True)
class LineRows:
    """The rows, the most important first, and notes on all of them.

    ``unexecuted_lines`` are lines that were certainly not executed.
    """

    rows: list[LineRow]
    notes: list[str] = field(default_factory=list)
    unexecuted_lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LineSpec:
    """The ``measures`` in the order of their columns, the ``main`` one, and the function that reads the rows."""

    measures: tuple[LineMeasure, ...]
    main: str
    rows: Callable[[ProbeResult, Any], LineRows]

    def __post_init__(self) -> None:
        """Raise ValueError if ``main`` is none of the measures."""
        names = [measure.name for measure in self.measures]
        if names and self.main not in names:
            raise ValueError(f"main = {self.main!r} is not a measure; use one of: {', '.join(names)}")


def measure_named(measures: tuple[LineMeasure, ...], name: str) -> LineMeasure:
    """Return the declaration of a column; for an undeclared one neither more nor less is better."""
    return next((measure for measure in measures if measure.name == name), LineMeasure(name, better="neither"))


def share_text(part: float, whole: float) -> str | None:
    """Format a share: ``12.5%``; None if the whole is 0."""
    return f"{part / whole:.1%}" if whole else None


def ranked_rows(
    lines: Iterable[LineSums],
    amount: Callable[[LineSums], float],
    values_of: Callable[[LineSums], Mapping[str, Any]],
) -> list[LineRow]:
    """Return a row per line, the largest first: its ``share`` of the amount of all, then its ``values``."""
    ranked = sorted(lines, key=lambda line: -amount(line))
    total = sum(map(amount, ranked))
    return [
        LineRow(line.line, line.source, {"share": share_text(amount(line), total), **values_of(line)})
        for line in ranked
    ]


def longest_waits(
    key: str,
    label: str,
    line: LineSums,
    total_cycles: int,
    cycles_per_wait: float | None,
    values: Mapping[str, Evidence],
) -> Finding:
    """Return the finding of longest waits: the share of a line in ``total_cycles``, the cycles of all, and cycles per
    wait.
    """
    text = (
        f"{place(line.line, line.source, line.opcode)}, {percent(line.sums['waited'], total_cycles)} of all waiting, "
    )
    text += f"{units.count(round(cycles_per_wait or 0))} cycles per wait"
    return Finding(key, label, text, "lines", line.line, values={"waited": timed(line.sums["waited"]), **values})

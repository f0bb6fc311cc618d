"""What a probe tells of single lines of PTX: which quantities, and a row of them for each line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from tui_probe.probekit.declared import one_of
from tui_probe.probekit.metric import Better

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.source_lines import SourceLine

Value = int | float | str | None

Rule = Literal["sum", "ratio", "share", "first", "none"]
IDEAL: Final = "ideal: the fewest sectors of 32 B that the bytes asked for fit into; beyond that they are wasted"
"""What must be said of lines whose sectors are held against those."""


class Share(float):
    """A part of a whole from 0 to 1, which text shows in per cent."""

    @property
    def text(self) -> str:
        """``50%``."""
        return f"{100 * self:.0f}%" if not 0 < self < 0.01 else "<1%"


@dataclass(frozen=True, slots=True)
class LineMeasure:
    """A quantity of a line. ``better`` lower: the line with most of it is the one to look at.

    ``rule`` says what several lines of PTX, which came from one line of source, have together: the sum; the ratio of
    the sums of two other measures, ``parts``, or the same as a ``share`` in per cent; the value of the first; or
    nothing that can be said.
    """

    name: str
    rule: Rule = "none"
    parts: tuple[str, str] = ("", "")
    better: Better = "lower"

    def __post_init__(self) -> None:
        """Raises ValueError for what is none of the words that there are."""
        one_of(Better, self.better, f"better of line measure {self.name}")
        one_of(Rule, self.rule, f"rule of line measure {self.name}")

    @property
    def key(self) -> str:
        """As data names it."""
        return self.name.replace(" ", "_")


@dataclass(frozen=True, slots=True)
class LineRow:
    """A line of pruned.ptx, 0 if the row is of none, its source, and what was found of it by the measure's name."""

    line: int
    source: SourceLine | None
    found: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class LineRows:
    """The rows in the order in which they matter, and what must be said of all of them.

    ``silent`` are lines that were certainly not executed.
    """

    rows: list[LineRow]
    notes: list[str] = field(default_factory=list)
    silent: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """The ``measures`` in the order of their columns, which of them says most of a line, and how rows are read."""

    measures: tuple[LineMeasure, ...]
    main: str
    rows: Callable[[ProbeResult, Any], LineRows]

    def __post_init__(self) -> None:
        """Raises ValueError if ``main`` is none of the measures."""
        names = [measure.name for measure in self.measures]
        if names and self.main not in names:
            raise ValueError(f"main of the lines is {self.main!r}; there are {', '.join(names)}")


def measure_named(measures: tuple[LineMeasure, ...], name: str) -> LineMeasure:
    """The declaration of a column; of what nobody declared neither more nor less is better."""
    return next((measure for measure in measures if measure.name == name), LineMeasure(name, better="neither"))


def share_text(part: float, whole: float) -> str | None:
    """``12.5%``; None where there is nothing to take a share of."""
    return f"{part / whole:.1%}" if whole else None

"""Durations of the ways to fill, as the program wrote them, and what scheduling explains of the difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.bar_chart import Bar, BarChart
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.input_limits import PROGRAM_OUTPUT
from tui_probe.json_data import parse_json
from tui_probe.trace.plain_file import read_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.evals.given import Given

    from .schedules import Schedule

_WHOLE_SPREAD: Final = (5, 95)
BASE: Final = "plain"
"""The way that others are compared with."""


@dataclass(frozen=True, slots=True)
class Filled:
    """One way to fill: ``microseconds`` of each launch, without what the two events around it take; (launches,).

    Empty where nothing was timed, as on the simulated GPU. ``pair`` is what the events take, in microseconds.
    """

    name: str
    what: str
    microseconds: NDArray[np.float64]
    pair: float | None

    def at(self, percentile: float) -> float | None:
        """In microseconds."""
        return float(np.percentile(self.microseconds, percentile)) if len(self.microseconds) else None

    @property
    def median(self) -> float | None:
        return self.at(50)

    @property
    def spread(self) -> float | None:
        """The middle nine tenths of the launches, as a part of the median."""
        low, high, median = self.at(_WHOLE_SPREAD[0]), self.at(_WHOLE_SPREAD[1]), self.median
        return (high - low) / median if median and low is not None and high is not None else None


def durations_in(given: Given) -> list[Filled]:
    """What the program of a trace wrote; none where it is another program. TraceError for a line that is broken."""
    path = None if given.trace is None else given.trace.file("stdout.log")
    if given.trace is None or path is None or not (lines := list(_lines(path))):
        return []
    timed = not given.trace.state.simulated
    try:
        return [_filled(parse_json(line), timed=timed) for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path}: a line of durations cannot be read ({error}): collect it again") from error


def _lines(path: Path) -> Iterator[str]:
    text = read_start(path, PROGRAM_OUTPUT).decode("utf-8", "replace")
    return (line for line in text.splitlines() if line.startswith('{"fill": '))


def _filled(line: dict[str, Any], *, timed: bool) -> Filled:
    values, nothing = (np.array(line[key] if timed else [], np.float64) for key in ("microseconds", "nothing"))
    pair = float(np.median(nothing)) if len(nothing) else None
    return Filled(str(line["fill"]), str(line["what"]), np.maximum(values - (pair or 0.0), 0.0), pair)


@dataclass(frozen=True, slots=True)
class Compared:
    """A way to fill beside the plain one. ``schedule`` is None where the hook sees no launch, as of the driver's own.

    ``scheduling`` is microseconds per slot by the highest clock; ``gained`` those that it is faster than plain,
    ``saved`` those that a slot waits less for blocks, and ``shorter`` those by which its probed launch spans less.
    """

    filled: Filled
    plain: Filled | None
    schedule: Schedule | None
    plain_schedule: Schedule | None

    @property
    def faster(self) -> float | None:
        """Times as fast as the plain one."""
        mine, other = self.filled.median, None if self.plain is None else self.plain.median
        return other / mine if mine and other else None

    @property
    def scheduling(self) -> float | None:
        return microseconds(self.schedule)

    @property
    def gained(self) -> float | None:
        mine, other = self.filled.median, None if self.plain is None else self.plain.median
        return None if mine is None or other is None or self.filled is self.plain else other - mine

    @property
    def saved(self) -> float | None:
        mine, other = self.scheduling, microseconds(self.plain_schedule)
        return None if mine is None or other is None or self.filled is self.plain else other - mine

    @property
    def explained(self) -> float | None:
        """The most of the gain that less scheduling can explain, from 0 to 1; None where nothing is gained.

        Slots wait while others of their SM work, so a launch gets shorter by no more than they wait less.
        """
        if self.saved is None or self.gained is None or self.gained <= 0:
            return None
        return min(max(self.saved, 0.0) / self.gained, 1.0)

    @property
    def shorter(self) -> float | None:
        mine, other = self.schedule, self.plain_schedule
        if self.saved is None or mine is None or other is None:
            return None
        return _by_clock(other.of.span, other) - _by_clock(mine.of.span, mine)


def microseconds(schedule: Schedule | None) -> float | None:
    """Scheduling per slot by the highest clock; None where that is unknown, or simulated."""
    return None if schedule is None or not schedule.clock_khz else _by_clock(schedule.scheduling, schedule)


def _by_clock(cycles: float, schedule: Schedule) -> float:
    return 1e3 * cycles / (schedule.clock_khz or np.nan)


def compare(filled: Sequence[Filled], schedules: Sequence[Schedule]) -> list[Compared]:
    """Each way beside the plain one; schedules are those of the traces with the same names."""
    plain = next((one for one in filled if one.name == BASE), None)
    named = {one.label: one for one in schedules}
    return [Compared(one, plain, named.get(one.name), named.get(BASE)) for one in filled]


def said(rows: Sequence[Compared]) -> Iterator[str]:
    """A sentence for each way that is not the plain one."""
    for row in rows:
        if row.faster is None or row.gained is None:
            continue
        yield f"{row.filled.name}: {row.faster:.2f}× as fast as plain ({_time(row.gained)} gained per fill)" + _why(row)


def _why(row: Compared) -> str:
    """What scheduling has to do with it: how much less slots wait, and how much of that shows in the launch."""
    if row.schedule is None:
        return "; the driver launches it itself, so its blocks are not seen"
    if row.saved is None:
        return ""
    words = f"; a slot waits {_time(row.saved)} less for blocks"
    if row.explained is not None:
        words += f", which explains at most {row.explained:.0%} of the gain"
    if row.shorter is not None and row.saved > 0:
        words += (
            f". Other slots work meanwhile: the probed launch is {_time(row.shorter)} shorter,"
            f" {row.shorter / row.saved:.0%} of that waiting"
        )
    return words


def chart(rows: Sequence[Compared]) -> BarChart:
    """Medians, with the middle nine tenths as spread."""
    bars = [Bar(one.filled.name, (one.filled.median,), _time(one.filled.median), _span(one.filled)) for one in rows]
    return BarChart("ways to fill 32 MiB with zeros", bars, ("median duration",), "microseconds", _time)


def _span(filled: Filled) -> tuple[float, float] | None:
    low, high = filled.at(_WHOLE_SPREAD[0]), filled.at(_WHOLE_SPREAD[1])
    return None if low is None or high is None else (low, high)


def _time(value: float | None) -> str:
    if value is None:
        return NOT_MEASURED
    return f"-{units.duration(-value / 1e6)}" if value < 0 else units.duration(value / 1e6)


def _times(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.2f}×"


def _percent(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.1%}"


COLUMNS: Final[tuple[Column[Compared], ...]] = (
    Column("variant", lambda r: r.filled.name, "way", lambda r: r.filled.name, False),
    Column("what", lambda r: r.filled.what, "what", lambda r: r.filled.what, False, 4, 12),
    Column(
        "launches", lambda r: len(r.filled.microseconds), "timed", lambda r: str(len(r.filled.microseconds)), rank=3
    ),
    Column("median_us", lambda r: r.filled.median, "median", lambda r: _time(r.filled.median)),
    Column("least_us", lambda r: r.filled.at(0), "least", lambda r: _time(r.filled.at(0)), rank=2),
    Column("most_us", lambda r: r.filled.at(100), "most", lambda r: _time(r.filled.at(100)), rank=2),
    Column("spread", lambda r: r.filled.spread, "spread", lambda r: _percent(r.filled.spread)),
    Column("events_us", lambda r: r.filled.pair),
    Column("faster", lambda r: r.faster, "as fast", lambda r: _times(r.faster)),
    Column("scheduling_us", lambda r: r.scheduling, "scheduling", lambda r: _time(r.scheduling)),
    Column("gained_us", lambda r: r.gained, "gained", lambda r: _time(r.gained)),
    Column("saved_us", lambda r: r.saved, "waits less", lambda r: _time(r.saved)),
    Column("explained", lambda r: r.explained, "explains ≤", lambda r: _percent(r.explained)),
    Column("shorter_us", lambda r: r.shorter, "span less", lambda r: _time(r.shorter), rank=2),
)

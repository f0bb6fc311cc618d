"""Select the measured iterations of a profiled program: repeated parts of its launch sequence.

A part repeats with period p where each item equals the one p places before it. Of all such parts those are taken that
are repeated equally often and together hold the most items: a program that measures several configurations has as many
parts, each of as many iterations.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.nsight.analysis.kernel_groups import Session, Shape, sessions_of, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.ncu_table import NcuTable

_MAX_PERIOD: Final = 4096
_MIN_REPEATS: Final = 3
"""Two equal neighbours may be chance; a part that is repeated three times is believed first."""


class Repeat(NamedTuple):
    """``times`` × ``period`` items from ``start``; the items of each period are equal to those of the others."""

    start: int
    period: int
    times: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.times


def find_repeats(codes: Sequence[int], min_times: int = 2) -> list[Repeat]:
    """Return every part that is repeated ``min_times`` times or more, the shortest periods first; no period is a
    multiple of a shorter one.

    ``codes`` is shape (items,). Takes time in proportion to items × the longest period looked for (4096).
    """
    items = np.asarray(codes, dtype=np.int64)
    repeats: list[Repeat] = []
    for period in range(1, min(len(items) // min_times, _MAX_PERIOD) + 1):
        for start, end in _runs(items[:-period] == items[period:], period * (min_times - 1)):
            times = (end - start + period) // period
            repeat = Repeat(start, period, times)
            if times >= min_times and not _is_explained(repeats, repeat):
                repeats.append(repeat)
    return repeats


def _runs(is_equal: NDArray[np.bool_], min_length: int) -> Iterable[tuple[int, int]]:
    """Yield start and end of each run of at least ``min_length`` True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_equal, [False])).astype(np.int8)))
    run_starts, run_ends = edges[::2], edges[1::2]
    is_long = run_ends - run_starts >= min_length
    return zip(run_starts[is_long].tolist(), run_ends[is_long].tolist(), strict=True)


def _is_explained(repeats: Iterable[Repeat], repeat: Repeat) -> bool:
    """Return whether a shorter period explains the same part."""
    return any(
        repeat.period % shorter.period == 0
        and shorter.start <= repeat.start
        and repeat.end <= shorter.end + shorter.period - 1
        for shorter in repeats
    )


def find_iterations(codes: Sequence[int]) -> list[Repeat]:
    """The parts that are repeated equally often and hold the most items, in order; none if nothing repeats."""
    by_times: dict[int, list[Repeat]] = defaultdict(list)
    for repeat in find_repeats(codes, _MIN_REPEATS) or find_repeats(codes):
        by_times[repeat.times].append(repeat)
    parts = [without_overlaps(group) for group in by_times.values()]
    return max(parts, key=lambda part: (sum(span.end - span.start for span in part), part[0].times), default=[])


def without_overlaps(candidates: Iterable[Repeat]) -> list[Repeat]:
    """Return the repeats in order; of those that overlap, the one with the most items."""
    selected: list[Repeat] = []
    for repeat in sorted(candidates, key=lambda repeat: (repeat.start - repeat.end, repeat.start)):
        if all(repeat.end <= previous.start or previous.end <= repeat.start for previous in selected):
            selected.append(repeat)
    return sorted(selected)


@dataclass(frozen=True, slots=True)
class IterationPlan:
    """Warm-up and runs of the program as its user gives them; None: find them.

    A program that is measured does its work N = warm-up + runs times, among launches that prepare and check. The
    kernels of interest are those launched N times, or a multiple. Where N is not given it is found: the sequence of
    launches repeats N times. The first ``warm_up`` iterations are excluded.
    """

    warm_up: int | None = None
    runs: int | None = None
    expected_names: tuple[str, ...] = ()
    """Parts of names of kernels that should have run."""

    @property
    def times(self) -> int | None:
        """Warm-up + runs, if both are known."""
        return None if self.warm_up is None or self.runs is None else self.warm_up + self.runs


AUTOMATIC: Final = IterationPlan()
"""Nothing is given: everything is to be found."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One measured part of one process.

    ``launches`` (positions in the table) and ``iteration`` (from 0) have one entry per launch of the part, the warm-up
    among them. ``is_detected`` tells whether N was found in the sequence, not given.
    """

    file: int
    process: int | None
    part: int
    times: int
    warm_up: int
    is_detected: bool
    launches: NDArray[np.int64]
    iteration: NDArray[np.int64]
    is_whole_process: bool = False
    """True for all of a process in which nothing repeats, taken as one iteration."""

    @property
    def runs(self) -> int:
        return self.times - self.warm_up

    @property
    def measured_launches(self) -> NDArray[np.int64]:
        """Launches after the warm-up."""
        return self.launches[self.iteration >= self.warm_up]


@dataclass(frozen=True, slots=True)
class ShapeSelection:
    """The launches of one shape in one process, and the number that count. ``loop`` is None if none is in an iteration:
    then all are dropped, or all kept in a file without iterations.
    """

    shape: Shape
    file: int
    process: int | None
    launches: Sequence[int]
    kept_launches: int
    reason: str
    loop: Loop | None = None


@dataclass(frozen=True, slots=True)
class LaunchSelection:
    """The measured parts of all processes, the outcome of every shape, and expected kernels that never ran."""

    loops: Sequence[Loop]
    outcomes: Sequence[ShapeSelection]
    missing_names: Sequence[str]
    notes: Sequence[str]
    whole_processes: Sequence[Loop] = ()
    """Processes of files without iterations, in which every launch counts."""

    @property
    def parts(self) -> list[Loop]:
        """All that counts."""
        return [*self.loops, *self.whole_processes]

    @property
    def measured_launches(self) -> list[int]:
        """Positions in the table of the launches that are kept: as many of each shape as its outcome says."""
        unlooped_launches = (
            outcome.launches for outcome in self.outcomes if outcome.loop is None and outcome.kept_launches
        )
        return [
            *(launch for loop in self.loops for launch in loop.measured_launches.tolist()),
            *chain.from_iterable(unlooped_launches),
        ]


def select_launches(table: NcuTable, plan: IterationPlan) -> LaunchSelection:
    """Select the launches that matter; the notes name what was not found."""
    loops: list[Loop] = []
    outcomes: list[ShapeSelection] = []
    notes: list[str] = []
    sessions = sessions_of(table)
    for session in sessions:
        session_loops = _loops(session, plan)
        loops += session_loops
        outcomes += _shape_selections(session, session_loops, plan)
        if not session_loops:
            notes.append(f"{table.files[session.file].name}: {_no_loop_reason(session, plan)}")
    if loops and plan.warm_up is None and plan.runs is None:
        notes.append("averages include warm-up iterations, whose number is unknown; pass --warmup or --runs")
    names = [launch.kernel for launch in table.launches]
    missing_names = [part for part in plan.expected_names if not any(part in name for name in names)]
    looped_files = {loop.file for loop in loops}
    outcomes = [outcome if outcome.file in looped_files else _keep_all(outcome) for outcome in outcomes]
    whole_processes = [_whole_process(session) for session in sessions if session.file not in looped_files]
    return LaunchSelection(loops, outcomes, missing_names, notes, whole_processes)


def _keep_all(outcome: ShapeSelection) -> ShapeSelection:
    """Select all launches of a file without iterations: none are distinguished as what is measured."""
    return replace(outcome, kept_launches=len(outcome.launches), reason=f"all launches kept: {outcome.reason}")


def _whole_process(session: Session) -> Loop:
    """All launches of a process as one iteration."""
    launches = np.asarray(session.launches, dtype=np.int64)
    return Loop(session.file, session.process, 0, 1, 0, False, launches, np.zeros_like(launches), is_whole_process=True)


def _loops(session: Session, plan: IterationPlan) -> list[Loop]:
    """The measured parts of one process: as given, else found. None if they leave no run after the warm-up."""
    if plan.times is None:
        parts = find_iterations(session.codes)
        if not parts or _warm_up_of(parts[0].times, plan) is None:
            return []
        return [_loop_of_repeat(session, part, number, part.times, plan) for number, part in enumerate(parts)]
    times = plan.times
    parts = without_overlaps(
        repeat for repeat in find_repeats(session.codes, max(times, 2)) if repeat.times % times == 0
    )
    if parts:
        return [_loop_of_repeat(session, part, number, times, plan) for number, part in enumerate(parts)]
    return _loop_by_counts(session, times, plan)


def _loop_of_repeat(session: Session, part: Repeat, number: int, times: int, plan: IterationPlan) -> Loop:
    count = part.end - part.start
    launches = np.asarray(session.launches[part.start : part.end], dtype=np.int64)
    iteration = np.arange(count, dtype=np.int64) * times // count
    warm_up = _warm_up_of(times, plan) or 0
    return Loop(session.file, session.process, number, times, warm_up, plan.times is None, launches, iteration)


def _warm_up_of(times: int, plan: IterationPlan) -> int | None:
    """Iterations to leave out of ``times``; None if no run is left, or there are fewer than the runs asked for."""
    if plan.warm_up is not None:
        return plan.warm_up if plan.warm_up < times else None
    if plan.runs is not None:
        return times - plan.runs if plan.runs <= times else None
    return 0


def _loop_by_counts(session: Session, times: int, plan: IterationPlan) -> list[Loop]:
    """Return the loop of a session without a repeated sequence: shapes launched ``times`` times or a multiple, in
    the order of launching.
    """
    launches: list[int] = []
    iteration: list[int] = []
    for code, count in Counter(session.codes).items():
        if count % times == 0:
            launches += session.launches_of_shape(code)
            iteration += [number * times // count for number in range(count)]
    if not launches:
        return []
    order = np.argsort(launches)
    positions, numbers = np.array(launches, dtype=np.int64)[order], np.array(iteration, dtype=np.int64)[order]
    return [Loop(session.file, session.process, 0, times, plan.warm_up or 0, False, positions, numbers)]


def _shape_selections(session: Session, loops: Iterable[Loop], plan: IterationPlan) -> list[ShapeSelection]:
    """The outcome of each shape, in the order of first launch."""
    loop_of_launch = {launch: loop for loop in loops for launch in loop.launches.tolist()}
    all_measured = {launch for loop in loops for launch in loop.measured_launches.tolist()}
    outcomes = []
    for code, shape in enumerate(session.shapes):
        launches = session.launches_of_shape(code)
        looped_launches = [launch for launch in launches if launch in loop_of_launch]
        loop = loop_of_launch[looped_launches[0]] if looped_launches else None
        measured_launches = sum(launch in all_measured for launch in launches)
        reason = (
            _keep_reason(loop, len(launches), looped_launches, measured_launches)
            if loop is not None
            else _drop_reason(len(launches), loop_of_launch, plan)
        )
        outcomes.append(ShapeSelection(shape, session.file, session.process, launches, measured_launches, reason, loop))
    return outcomes


def _keep_reason(loop: Loop, launch_count: int, looped_launches: Sequence[int], kept_launches: int) -> str:
    per_iteration, remainder = divmod(len(looped_launches), loop.times)
    launches = len(looped_launches) if remainder else per_iteration
    launched_text = (
        f"{_grouped_count(launches)} {'launch' if launches == 1 else 'launches'} {'in' if remainder else '×'}"
    )
    launched_text += f" {_grouped_count(loop.times)} iterations"
    launched_text += f", {_grouped_count(loop.warm_up)} dropped as warm-up" if loop.warm_up else ""
    dropped_text = (
        f", {_grouped_count(launch_count - len(looped_launches))} dropped outside of the iterations"
        if launch_count > len(looped_launches)
        else ""
    )
    return f"{launched_text}{dropped_text}" if kept_launches else f"{launched_text}: none kept"


def _grouped_count(number: int) -> str:
    """Format a number with thin groups, as pages do: ``12 345``."""
    return f"{number:,}".replace(",", " ")


def _drop_reason(launch_count: int, has_loops: object, plan: IterationPlan) -> str:
    times = "once" if launch_count == 1 else f"{_grouped_count(launch_count)} times"
    if plan.times is not None and launch_count % plan.times == 0 and has_loops:
        return f"launched {times}, but outside of the iterations"
    if plan.times is not None:
        return f"launched {times}, not a multiple of {_grouped_count(plan.times)}"
    return (
        f"launched {times}, outside of the repeating sequence"
        if has_loops
        else (f"launched {times}; no launch sequence repeats")
    )


def _no_loop_reason(session: Session, plan: IterationPlan) -> str:
    if plan.times is None:
        parts = find_iterations(session.codes)
        if len(session.shapes) == len(session.codes):
            return "every kernel was launched once, so no warm-up was removed"
        if not parts:
            return "no launch sequence repeats, so no warm-up was removed; pass --warmup and --runs"
        requirement = f"{plan.warm_up} warm-up iterations" if plan.warm_up is not None else f"{plan.runs} runs"
        return f"the launch sequence repeats only {_grouped_count(parts[0].times)} times, too few for {requirement}"
    counts = ", ".join(_grouped_count(count) for count in sorted(set(Counter(session.codes).values())))
    return f"no kernel was launched {_grouped_count(plan.times)} times, or a multiple of this; launch counts: {counts}"


def iterated_shapes(
    table: NcuTable, choice: LaunchSelection, times: NDArray[np.float64], plan: IterationPlan
) -> set[Shape] | None:
    """The shapes launched in the iterations; None where these were found and do not hold most of the time.

    ``times`` is ns by launch; where it is not measured the number of launches stands for it.
    """
    looped_launches = [launch for loop in choice.loops for launch in loop.launches.tolist()]
    weights = np.ones(len(times)) if np.isnan(times).any() else times
    if not looped_launches or (plan.times is None and weights[looped_launches].sum() < weights.sum() / 2):
        return None
    return {shape_of(table, launch) for launch in looped_launches}

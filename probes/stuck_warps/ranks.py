"""Processes of a run in which some launches do not end: where each process is, and which has not arrived."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import Column
from tui_probe.draw.table_content import PageTexts, TableContent
from tui_probe.errors import TraceError
from tui_probe.probekit.page_kinds import TracePage
from tui_probe.probekit.probe_results import read_result_row
from tui_probe.trace.follow import open_trace
from tui_probe.trace.model import Trace
from tui_probe.trace.run_info import traces_of_run

from .analysis import analyse
from .causes import likely_cause
from .view import waits_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_probe.draw.view import Progress
    from tui_probe.trace.event_types import LaunchStuck
    from tui_probe.trace.model import Kernel
    from tui_probe.trace.run import Run

    from .places import PlaceGroup


_MAX_NAME: Final = 40
"""Characters of a kernel's name in text."""


@dataclass(frozen=True)
class RankState:
    """One process. ``stuck`` is its last launch that does not end, of ``kernel``; ``group`` the place of most of its
    warps; ``launches`` counts its launches by kernel.
    """

    trace: Trace
    rank: int
    stuck: LaunchStuck | None
    kernel: Kernel | None
    group: PlaceGroup | None
    cause: str
    launches: Counter[str]

    @property
    def end_text(self) -> str:
        """Text on the end and the last launch of a process that is not stuck."""
        state = self.trace.state
        end = "running" if state.is_running else "ended"
        if state.signal:
            end = f"ended by signal {state.signal}"
        elif state.exit_status:
            end = f"ended with status {state.exit_status}"
        last_launch = self.trace.launches[-1] if len(self.trace.launches) else None
        name = (
            ""
            if last_launch is None
            else f", last launch {last_launch.number} of {self.trace.kernels[last_launch.kernel].name}"
        )
        return f"{end}{name}"


@dataclass(frozen=True, slots=True)
class RankCause:
    """Reason why ranks wait for each other, by what their launches show."""

    key: str
    text: str
    advice: str
    missing_ranks: tuple[int, ...] = ()


def rank_states(traces: Sequence[Trace]) -> list[RankState]:
    """The processes of a run, by rank; those without a rank in the order of their traces, behind the others."""
    ranks = _known_ranks(traces)
    unknown = count(max((rank for rank in ranks if rank is not None), default=-1) + 1)
    states = [
        _rank_state(trace, next(unknown) if rank is None else rank) for trace, rank in zip(traces, ranks, strict=True)
    ]
    return sorted(states, key=lambda state: state.rank)


def _known_ranks(traces: Sequence[Trace]) -> list[int | None]:
    """The rank of each process. Without a number of ranks, equal ranks are none: all processes may share a variable."""
    process_ranks = [trace.state.rank for trace in traces]
    ranks = [rank.rank for rank in process_ranks if rank is not None]
    are_distinct = len(set(ranks)) == len(ranks)
    return [rank.rank if rank is not None and (are_distinct or rank.size) else None for rank in process_ranks]


def _rank_state(trace: Trace, rank: int) -> RankState:
    stuck = trace.state.stuck[-1] if trace.state.stuck else None
    kernel = trace.kernels[stuck.kernel] if stuck is not None else None
    group, cause = _main_place(trace, kernel, stuck) if kernel is not None and stuck is not None else (None, "")
    counts = Counter({kernel.name: kernel.launches for kernel in trace.kernels if kernel.launches})
    return RankState(trace, rank, stuck, kernel, group, cause, counts)


def _main_place(trace: Trace, kernel: Kernel, stuck: LaunchStuck) -> tuple[PlaceGroup | None, str]:
    """Return the place of most warps of a launch, and its likely cause."""
    row = next((row for row in reversed(kernel.result_rows) if trace.results.launch(row) == stuck.launch), None)
    if row is None:
        return None, ""
    try:
        warps = analyse(read_result_row(trace, kernel, row).result, kernel.folder)
    except TraceError:
        return None, ""
    cause = likely_cause(warps)
    return (warps.groups[0] if warps.groups else None), (cause.text if cause else "")


def rank_cause(states: Sequence[RankState], size: int) -> RankCause | None:
    """Return who has not arrived; None if no process is stuck."""
    stuck = [state for state in states if state.kernel is not None]
    if not stuck:
        return None
    kernels = Counter(state.kernel.name for state in stuck if state.kernel is not None)
    (name, _), *other_kernels = kernels.most_common()
    waiting_states = [state for state in stuck if state.kernel is not None and state.kernel.name == name]
    max_launches = max(state.launches[name] for state in waiting_states)
    ranks_behind = [state.rank for state in states if state.kernel is None and state.launches[name] < max_launches]
    absent_ranks = sorted(set(range(size)) - {state.rank for state in states})
    if ranks_behind or absent_ranks:
        return _missing_ranks(ranks_behind, absent_ranks, waiting_states, name, max_launches)
    if other_kernels:
        return _different_kernels(stuck, kernels)
    late_states = [state for state in waiting_states if state.launches[name] < max_launches]
    return (
        _late_ranks(late_states, name, max_launches)
        if late_states
        else _all_arrived(states, waiting_states, name, max_launches)
    )


def _missing_ranks(
    ranks_behind: Sequence[int],
    absent_ranks: Sequence[int],
    waiting_states: Sequence[RankState],
    name: str,
    launch: int,
) -> RankCause:
    """Ranks that run something else (``ranks_behind``), or have no trace (``absent_ranks``)."""
    missing_ranks = sorted({*ranks_behind, *absent_ranks})
    absent_text = f"; {ranks_text(absent_ranks)} launched no kernel" if absent_ranks else ""
    waiting_text = f"{ranks_text(state.rank for state in waiting_states)} {_waits_or_wait(waiting_states)}"
    text = (
        f"{ranks_text(missing_ranks)} {_has_or_have(missing_ranks)} not arrived: {waiting_text}"
        f" in {shorten(name, _MAX_NAME)} (launch {launch} of this kernel in each process){absent_text}"
    )
    advice = "check whether these ranks took another branch, raised an exception, or run slow or blocked host code"
    return RankCause("rank-missing", text, advice, tuple(missing_ranks))


def _different_kernels(stuck: Sequence[RankState], kernels: Iterable[str]) -> RankCause:
    parts = (
        f"{ranks_text(s.rank for s in stuck if s.kernel and s.kernel.name == kernel)} in {kernel}" for kernel in kernels
    )
    advice = "launch collectives in the same order on all ranks; between several streams, enforce the order with events"
    return RankCause("different-kernels", f"ranks wait in different kernels: {'; '.join(parts)}", advice)


def _late_ranks(late_states: Sequence[RankState], name: str, max_launches: int) -> RankCause:
    """Ranks that wait in an earlier launch of the same kernel."""
    ranks = list(dict.fromkeys(state.rank for state in late_states))
    min_launches = min(state.launches[name] for state in late_states)
    text = (
        f"{ranks_text(ranks)} {_is_or_are(ranks)} behind: launch {min_launches} of {name};"
        f" the other ranks are at launch {max_launches}"
    )
    return RankCause("rank-behind", text, "call each collective the same number of times in all ranks", tuple(ranks))


def _all_arrived(states: Sequence[RankState], waiting_states: Sequence[RankState], name: str, launch: int) -> RankCause:
    """The cause where no rank is missing: all wait, or others have left the launch in which these wait."""
    ranks_gone = [state.rank for state in states if state not in waiting_states]
    others_text = f"; {ranks_text(ranks_gone)} left the kernel" if ranks_gone else ", and no other rank is missing"
    kernel_text = f"{shorten(name, _MAX_NAME)} (launch {launch} of this kernel in each process)"
    return RankCause(
        "all-arrived",
        f"{ranks_text(state.rank for state in waiting_states)} {_waits_or_wait(waiting_states)} in {kernel_text}"
        f"{others_text}",
        "compare sizes, types and order of the exchanged data, and check the connection between the GPUs",
    )


def ranks_text(ranks: Iterable[int]) -> str:
    """``rank 1``, ``ranks 0-2``."""
    return units.numbered("rank", list(ranks))


def _waits_or_wait(states: Sequence[RankState]) -> str:
    return "waits" if len(states) == 1 else "wait"


def _has_or_have(ranks: Sequence[int]) -> str:
    return "has" if len(ranks) == 1 else "have"


def _is_or_are(ranks: Sequence[int]) -> str:
    return "is" if len(ranks) == 1 else "are"


def _place_text(state: RankState) -> str:
    if state.stuck is None:
        return f"not stuck: {state.end_text}"
    return state.group.place.text if state.group else f"unknown: {state.stuck.reason or 'no result'}"


def _kernel_name(state: RankState) -> str | None:
    return state.kernel.demangled if state.kernel is not None else None


_COLUMNS: Final[tuple[Column[RankState], ...]] = (
    Column("rank", lambda s: s.rank, "rank", lambda s: str(s.rank)),
    Column("pid", lambda s: s.trace.state.pid, "process", lambda s: str(s.trace.state.pid or units.NOT_MEASURED)),
    Column("trace", lambda s: s.trace.directory.name),
    Column("stuck", lambda s: s.stuck is not None),
    Column("kernel", _kernel_name, "kernel", lambda s: _kernel_name(s) or units.NOT_MEASURED,
           right=False, narrow=16, shorten=shorten),
    Column("launch", lambda s: s.stuck.launch if s.stuck else None, "launch",
           lambda s: str(s.stuck.launch) if s.stuck else units.NOT_MEASURED),
    Column("seconds", lambda s: s.stuck.seconds if s.stuck else None, "seconds",
           lambda s: f"{s.stuck.seconds:.1f}" if s.stuck else units.NOT_MEASURED, rank=3),
    Column("warps", lambda s: s.stuck.warps if s.stuck else None, "warps",
           lambda s: units.count(s.stuck.warps) if s.stuck else units.NOT_MEASURED, rank=2),
    Column("place", _place_text, "where", _place_text, right=False, narrow=20),
    Column("waits_for", lambda s: waits_for(s.group.place) if s.group else None, "waits for",
           lambda s: (waits_for(s.group.place) if s.group else None) or units.NOT_MEASURED, right=False, narrow=10),
    Column("cause", lambda s: s.cause or None),
    Column("launches", lambda s: dict(sorted(s.launches.items())), nested=True),
)  # fmt: skip


def _traces(run: Run) -> list[Trace]:
    paths = traces_of_run(run.directory, run.run_info)
    return [run if isinstance(run, Trace) and path.name == run.directory.name else open_trace(path) for path in paths]


def _has_stuck_rank(trace: Trace) -> bool:
    """Return whether a run has several processes, and one of them a launch that does not end."""
    if len(traces_of_run(trace.directory, trace.run_info)) < 2 and not _rank_count(trace) > 1:
        return False
    return any(rank_trace.state.stuck for rank_trace in _traces(trace))


def _rank_count(run: Run) -> int:
    return run.state.rank.size if run.state.rank is not None else 0


def cause_among_ranks(run: Run, launch: int | None) -> RankCause | None:
    """The cause among the ranks of a run, if the launch is the last that does not end in its process. None if the
    run's processes have no ranks: these need not wait for each other.
    """
    stuck = run.state.stuck[-1:]
    if _rank_count(run) < 2 or not stuck or stuck[0].launch != launch:
        return None
    return rank_cause(rank_states(_traces(run)), _rank_count(run))


def _open_page(trace: Trace, progress: Progress) -> TableContent[RankState]:
    states = rank_states(_traces(trace))
    progress(1.0)
    cause = rank_cause(states, max((_rank_count(state.trace) for state in states), default=0))
    lines = () if cause is None else (f"most likely: {cause.text}", f"to fix it: {cause.advice}")
    record = cause and {
        "key": cause.key,
        "words": cause.text,
        "advice": cause.advice,
        "missing": list(cause.missing_ranks),
    }
    return TableContent(
        "ranks",
        "Stuck ranks",
        _COLUMNS,
        states,
        PageTexts(
            findings=lines,
            notes=("To list the warps of a rank: tui-probe show stuck TRACE:KERNEL, with the trace of the rank.",),
        ),
        {"cause": record, "processes": len(states)},
    )


RANKS: Final = TracePage("stuck", _open_page, applies=_has_stuck_rank)

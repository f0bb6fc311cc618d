"""Signals that end waits at mbarriers: which phases of a role signal a barrier, and which signal ends which wait.

The code names the barriers that it signals, but not always: a name may be unknown, or code may choose among several.
Then the signals are found by their number, or every phase that may signal the barrier is a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tui_probe.ptx.phase_names import COPIES, MBARRIER

from .analysis import NOT_RECORDED
from .matches import MAX_AHEAD, match_waits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .analysis import LaunchPhases, Spans
    from .kinds import Phase
    from .matches import Match

_MAX_CANDIDATES: Final = 8
"""Phases among which those are chosen that signal a barrier, at most: all subsets of them are tried."""


class WaitingRole(NamedTuple):
    """A role that waits at mbarriers in a phase, as numbers in ``LaunchPhases.roles`` and ``LaunchPhases.phases``."""

    role: int
    phase: int


@dataclass(frozen=True, slots=True)
class Signals:
    """Spans of a role in which it signals barriers. ``is_sure`` if these are all, else it perhaps signals others."""

    role: int
    spans: Spans
    is_sure: bool

    def phase(self, launch: LaunchPhases) -> Phase:
        """The phase with most of them."""
        return launch.phases[int(np.bincount(self.spans.phase).argmax())]


def signals_of(launch: LaunchPhases, role: int, waiting_role: WaitingRole) -> list[Signals]:
    """The spans of a role that begin where code signals the awaited mbarriers: of all phases, if code names any.

    Otherwise those of each phase that perhaps does: it signals an unknown mbarrier, or nothing here signals these.
    """
    names = [{name for name, _ in site.phase.signaled} if site.phase else set() for site in launch.sites]
    barriers = set().union(*names).intersection(launch.phases[waiting_role.phase].barriers)
    certain_spans = _signal_spans(launch, role, np.array([bool(signaled & barriers) for signaled in names], bool))
    if len(certain_spans):
        has_choice = np.array([len(signaled) > 1 for signaled in names], bool)
        is_known = launch.sampling_period or not has_choice[certain_spans.site].any()
        return [
            Signals(role, certain_spans, True)
            if is_known
            else _signals_of_barrier(launch, waiting_role, role, certain_spans)
        ]
    may_signal = [
        bool(site.phase and site.phase.signals) and not (signaled and barriers)
        for site, signaled in zip(launch.sites, names, strict=True)
    ]
    spans = _signal_spans(launch, role, np.array(may_signal, bool))
    return [Signals(role, spans.select(spans.phase == phase), False) for phase in np.unique(spans.phase).tolist()]


def _signals_of_barrier(launch: LaunchPhases, waiting_role: WaitingRole, role: int, signals: Spans) -> Signals:
    """The signals of the phases that together signal as often as the other role waits, in blocks with all records.

    Code may choose among several barriers, and which one a phase signals is then only known by this number. If it is
    not that of exactly one choice of phases, all of them perhaps signal this barrier.
    """
    warps, phases = launch.warps, np.unique(signals.phase)
    is_cut = np.isin(warps.block, warps.block[launch.spans.warp[launch.spans.phase == NOT_RECORDED]])
    signaling_warps = np.flatnonzero((warps.role == role) & ~is_cut)
    waits_by_block = _waits_by_block(launch, waiting_role, ~is_cut)
    wait_counts = np.array([waits_by_block.get(block, 0) for block in warps.block[signaling_warps].tolist()])
    counts = [
        np.bincount(signals.warp[signals.phase == phase], minlength=len(warps.block))[signaling_warps]
        for phase in phases
    ]
    candidates = [number for number, counts_by_warp in enumerate(counts) if counts_by_warp.any()]
    matching_subsets = [
        subset
        for size in range(1, len(candidates) + 1)
        for subset in combinations(candidates[:_MAX_CANDIDATES], size)
        if np.array_equal(np.sum([counts[number] for number in subset], axis=0), wait_counts)
    ]
    if len(matching_subsets) != 1 or len(candidates) > _MAX_CANDIDATES:
        return Signals(role, signals, False)
    return Signals(role, signals.select(np.isin(signals.phase, phases[[*matching_subsets[0]]])), True)


def _waits_by_block(launch: LaunchPhases, waiting_role: WaitingRole, is_complete: NDArray[np.bool_]) -> dict[int, int]:
    """Waits of a warp at the barriers in loops, by block, of the warps that ``is_complete`` selects."""
    warps = launch.warps
    span_numbers = _wait_span_numbers(launch, waiting_role)
    in_loop = np.array([phase.loop is not None for phase in launch.phases], bool)[launch.spans.phase[span_numbers]]
    waits = np.bincount(launch.spans.warp[span_numbers[in_loop]], minlength=len(warps.block))
    of_role = np.flatnonzero((warps.role == waiting_role.role) & is_complete)
    return dict(zip(warps.block[of_role].tolist(), waits[of_role].tolist(), strict=True))


def _signal_spans(launch: LaunchPhases, role: int, is_signal: NDArray[np.bool_]) -> Spans:
    """The spans of a role that begin at sites that ``is_signal`` selects. Where code signals before it waits, a span
    ends as it begins.
    """
    by_phase = [launch.span_numbers(role, number) for number, phase in enumerate(launch.phases) if phase.is_signal]
    span_numbers = np.sort(np.concatenate([*by_phase, np.zeros(0, np.int64)]))
    span_numbers = span_numbers[is_signal[launch.spans.site[span_numbers]]]
    spans = launch.spans.select(span_numbers)
    spans = spans.select(~_joins_next_mask(launch, spans, span_numbers))
    signals_first = np.array([bool(site.phase and site.phase.signals_first) for site in launch.sites], bool)[spans.site]
    return replace(spans, end=np.where(signals_first, spans.start, spans.end))


def _joins_next_mask(launch: LaunchPhases, spans: Spans, span_numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the spans that give one signal together with the span behind them; ``span_numbers`` are those in the launch.

    Where code arrives at a barrier in one phase and copies in the next one, both give one signal. So do a wait that
    signals at its end and the phase behind it, and two parts of a phase: in SASS, code that may skip a loop.
    """
    is_wait = np.array([phase.activity == "wait" for phase in launch.phases], bool)[spans.phase]
    is_copy = np.array([phase.work in COPIES for phase in launch.phases], bool)[spans.phase]
    begins_iteration = np.array([bool(site.phase and site.phase.iterates) for site in launch.sites], bool)[spans.site]
    is_next = (np.diff(span_numbers) == 1) & (np.diff(spans.warp) == 0) & ~is_wait[1:]
    is_part = (np.diff(spans.phase) == 0) & (np.diff(spans.site) != 0) & ~begins_iteration[1:]
    is_joined = is_next & (is_wait[:-1] | (is_copy[1:] & ~is_copy[:-1]) | is_part)
    return np.append(is_joined, np.zeros(min(len(spans), 1), bool))


def stages_at(phase: Phase) -> int | None:
    """The stages of a pipeline whose barriers a phase waits at; None if they are unknown or of several pipelines."""
    return phase.stages if len(phase.barriers) == 1 else None


def match_signals(launch: LaunchPhases, waiting_role: WaitingRole, signals: Signals) -> Match | None:
    """The waits of a phase with the signals that end them. Waits and signals of a pipeline are counted in all phases.

    Of sampled iterations, only waits and signals of the same iterations can be matched: of one phase each, by order.
    """
    spans = launch.spans.select(np.sort(_wait_span_numbers(launch, waiting_role)))
    max_ahead = MAX_AHEAD
    if launch.sampling_period:
        of_one_phase = len(np.unique(spans.phase)) == 1 and len(np.unique(signals.spans.phase)) == 1
        is_unique = signals.is_sure or len(signals_of(launch, signals.role, waiting_role)) == 1
        max_ahead = 1 if of_one_phase and is_unique else 0
    match = match_waits(launch, spans, signals.spans, stages_at(launch.phases[waiting_role.phase]), max_ahead)
    phase_match = None if match is None else match.select(match.waits.phase == waiting_role.phase)
    if phase_match is None or not phase_match.by_order or len(phase_match.waits):
        return phase_match
    # No wait of the phase has a round of signals, so they are matched by time.
    match = match_waits(launch, spans, signals.spans, None, 0)
    return None if match is None else match.select(match.waits.phase == waiting_role.phase)


def _wait_span_numbers(launch: LaunchPhases, waiting_role: WaitingRole) -> NDArray[np.int64]:
    """The numbers of the spans in which a role waits at the barriers of a phase, in this and in other phases."""
    barriers = set(launch.phases[waiting_role.phase].barriers)
    same_barrier_phases = {
        number
        for number, phase in enumerate(launch.phases)
        if number == waiting_role.phase or (phase.work == MBARRIER and barriers & {*phase.barriers})
    }
    return np.concatenate([launch.span_numbers(waiting_role.role, phase) for phase in same_barrier_phases])

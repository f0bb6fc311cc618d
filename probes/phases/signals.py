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

    from .analysis import Phases, Spans
    from .kinds import Phase
    from .matches import Match

_MAX_CHOICES: Final = 8
"""Phases among which those are chosen that signal a barrier, at most: all subsets of them are tried."""


class Waiting(NamedTuple):
    """A role that waits at mbarriers in a phase, as numbers in ``Phases.roles`` and ``Phases.phases``."""

    role: int
    phase: int


@dataclass(frozen=True, slots=True)
class Signals:
    """Spans of a role in which it signals barriers. ``is_sure`` if these are all, else it perhaps signals others."""

    role: int
    spans: Spans
    is_sure: bool

    def phase(self, launch: Phases) -> Phase:
        """The phase with most of them."""
        return launch.phases[int(np.bincount(self.spans.phase).argmax())]


def signals_of(launch: Phases, role: int, waiting: Waiting) -> list[Signals]:
    """The spans of a role that begin where code signals the awaited mbarriers: of all phases, if code names any.

    Otherwise those of each phase that perhaps does: it signals an unknown mbarrier, or nothing here signals these.
    """
    names = [{name for name, _ in site.phase.signaled} if site.phase else set() for site in launch.sites]
    barriers = set().union(*names).intersection(launch.phases[waiting.phase].barriers)
    sure = _signal_spans(launch, role, np.array([bool(signaled & barriers) for signaled in names], bool))
    if len(sure):
        several = np.array([len(signaled) > 1 for signaled in names], bool)
        is_known = launch.every or not several[sure.site].any()
        return [Signals(role, sure, True) if is_known else _of_this_barrier(launch, waiting, role, sure)]
    perhaps = [
        bool(site.phase and site.phase.signals) and not (signaled and barriers)
        for site, signaled in zip(launch.sites, names, strict=True)
    ]
    spans = _signal_spans(launch, role, np.array(perhaps, bool))
    return [Signals(role, spans.where(spans.phase == phase), False) for phase in np.unique(spans.phase).tolist()]


def _of_this_barrier(launch: Phases, waiting: Waiting, role: int, signals: Spans) -> Signals:
    """The signals of the phases that together signal as often as the other role waits, in blocks with all records.

    Code may choose among several barriers, and which one a phase signals is then only known by this number. If it is
    not that of exactly one choice of phases, all of them perhaps signal this barrier.
    """
    warps, phases = launch.warps, np.unique(signals.phase)
    is_cut = np.isin(warps.block, warps.block[launch.spans.warp[launch.spans.phase == NOT_RECORDED]])
    signaling = np.flatnonzero((warps.role == role) & ~is_cut)
    waits_by_block = _waits_by_block(launch, waiting, ~is_cut)
    expected = np.array([waits_by_block.get(block, 0) for block in warps.block[signaling].tolist()])
    counts = [
        np.bincount(signals.warp[signals.phase == phase], minlength=len(warps.block))[signaling] for phase in phases
    ]
    present = [number for number, counts_by_warp in enumerate(counts) if counts_by_warp.any()]
    fitting = [
        chosen
        for size in range(1, len(present) + 1)
        for chosen in combinations(present[:_MAX_CHOICES], size)
        if np.array_equal(np.sum([counts[number] for number in chosen], axis=0), expected)
    ]
    if len(fitting) != 1 or len(present) > _MAX_CHOICES:
        return Signals(role, signals, False)
    return Signals(role, signals.where(np.isin(signals.phase, phases[[*fitting[0]]])), True)


def _waits_by_block(launch: Phases, waiting: Waiting, is_complete: NDArray[np.bool_]) -> dict[int, int]:
    """Waits of a warp at the barriers in loops, by block, of the warps that ``is_complete`` selects."""
    warps = launch.warps
    places = _wait_places(launch, waiting)
    in_loop = np.array([phase.loop is not None for phase in launch.phases], bool)[launch.spans.phase[places]]
    waits = np.bincount(launch.spans.warp[places[in_loop]], minlength=len(warps.block))
    of_role = np.flatnonzero((warps.role == waiting.role) & is_complete)
    return dict(zip(warps.block[of_role].tolist(), waits[of_role].tolist(), strict=True))


def _signal_spans(launch: Phases, role: int, is_signal: NDArray[np.bool_]) -> Spans:
    """The spans of a role that begin at sites that ``is_signal`` selects. Where code signals before it waits, a span
    ends as it begins.
    """
    by_phase = [launch.places(role, number) for number, phase in enumerate(launch.phases) if phase.signals]
    places = np.sort(np.concatenate([*by_phase, np.zeros(0, np.int64)]))
    places = places[is_signal[launch.spans.site[places]]]
    spans = launch.spans.where(places)
    spans = spans.where(~_go_on(launch, spans, places))
    first = np.array([bool(site.phase and site.phase.signals_first) for site in launch.sites], bool)[spans.site]
    return replace(spans, end=np.where(first, spans.start, spans.end))


def _go_on(launch: Phases, spans: Spans, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which spans give one signal together with the span behind them; ``places`` are numbers in the launch.

    Where code arrives at a barrier in one phase and copies in the next one, both give one signal. So do a wait that
    signals at its end and the phase behind it, and two parts of a phase: in SASS, code that may skip a loop.
    """
    waits = np.array([phase.activity == "wait" for phase in launch.phases], bool)[spans.phase]
    copies = np.array([phase.work in COPIES for phase in launch.phases], bool)[spans.phase]
    begins_iteration = np.array([bool(site.phase and site.phase.iterates) for site in launch.sites], bool)[spans.site]
    is_next = (np.diff(places) == 1) & (np.diff(spans.warp) == 0) & ~waits[1:]
    is_part = (np.diff(spans.phase) == 0) & (np.diff(spans.site) != 0) & ~begins_iteration[1:]
    goes_on = is_next & (waits[:-1] | (copies[1:] & ~copies[:-1]) | is_part)
    return np.append(goes_on, np.zeros(min(len(spans), 1), bool))


def stages_at(phase: Phase) -> int | None:
    """The stages of a pipeline whose barriers a phase waits at; None if they are unknown or of several pipelines."""
    return phase.stages if len(phase.barriers) == 1 else None


def match_signals(launch: Phases, waiting: Waiting, signals: Signals) -> Match | None:
    """The waits of a phase with the signals that end them. Waits and signals of a pipeline are counted in all phases.

    Of sampled iterations, only waits and signals of the same iterations can be matched: of one phase each, by order.
    """
    spans = launch.spans.where(np.sort(_wait_places(launch, waiting)))
    max_ahead = MAX_AHEAD
    if launch.every:
        of_one_phase = len(np.unique(spans.phase)) == 1 and len(np.unique(signals.spans.phase)) == 1
        meets = signals.is_sure or len(signals_of(launch, signals.role, waiting)) == 1
        max_ahead = 1 if of_one_phase and meets else 0
    match = match_waits(launch, spans, signals.spans, stages_at(launch.phases[waiting.phase]), max_ahead)
    of_phase = None if match is None else match.where(match.waits.phase == waiting.phase)
    if of_phase is None or not of_phase.by_order or len(of_phase.waits):
        return of_phase
    # No wait of the phase has a round of signals, so they are matched by time.
    match = match_waits(launch, spans, signals.spans, None, 0)
    return None if match is None else match.where(match.waits.phase == waiting.phase)


def _wait_places(launch: Phases, waiting: Waiting) -> NDArray[np.int64]:
    """The numbers of the spans in which a role waits at the barriers of a phase, in this and in other phases."""
    barriers = set(launch.phases[waiting.phase].barriers)
    alike = {
        number
        for number, phase in enumerate(launch.phases)
        if number == waiting.phase or (phase.work == MBARRIER and barriers & {*phase.barriers})
    }
    return np.concatenate([launch.places(waiting.role, phase) for phase in alike])

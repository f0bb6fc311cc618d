"""Waits at mbarriers and barriers: what a wait is for, and how long the partner or the last warp is late.

A wait ends with the phase of another role that arrives at the mbarrier or issues the copy. From its start to the
end of that phase the partner is late; from there on copies or the barrier itself take the time. A wait at a barrier of
the block is released by the warp that arrives last.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.phase_names import BARRIER, MBARRIER, NAMED_BARRIER
from tui_probe.trace.source_lines import source_position

from .matches import UNKNOWN
from .signals import WaitingRole, match_signals, signals_of, stages_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tui_probe.trace.sites import Site

    from .analysis import LaunchPhases, Spans
    from .kinds import Phase
    from .matches import Match
    from .signals import Signals

_LATE_SHARE: Final = 0.5
"""Part of a wait before the partner's signal from which on the partner is late."""
_MAX_FREE_STAGES: Final = 0.5
"""Stages that may be free on average where all are said to be in use: none is in use at the start of a loop."""
_NOTABLE_SHARE: Final = 0.1
"""Part of a role's life from which on a wait for a free stage is notable."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The waits of a role in a phase.

    At a barrier of the block, ``late_cycles`` and ``in_flight_cycles`` are the cycles before and after its last warp
    arrives, summed over the blocks of ``LaunchPhases.some_blocks``, while ``cycles`` covers all blocks: compare shares,
    not cycles.
    """

    role: str
    phase: Phase
    count: int
    """Spans of the role in the phase."""
    cycles: int
    """Cycles in the phase, summed over the warps of the role."""
    role_life: int
    """Cycles from start to end of these warps, summed."""
    partner: str | None = None
    """The role that signals; None if there is none."""
    signal: Phase | None = None
    """Phase of the partner that ends with the signal; None if unknown."""
    late_cycles: int = 0
    """Cycles of matched waits before the partner's signal."""
    in_flight_cycles: int = 0
    """Cycles of matched waits after the partner's signal."""
    by_order: bool = False
    """True if each wait was matched with the signal of ``stages_ahead`` waits before."""
    stages_ahead: int | None = None
    """The number of stages, for a role that waits for a free one; None if this number is unknown."""
    arrivals: int = 0
    """Warps of the partner that give the signal of a wait matched by order; 0 if not matched so."""
    signal_count: int = 0
    """Phases in which a warp arrives at the barrier or issues copies to it; at a barrier of the block, its waits."""
    stages_in_use: float | None = None
    """Stages of the pipeline that are in use when a wait begins: filled or being filled, and not free again. Mean over
    waits that are matched by order with signals of this barrier; None without such.
    """
    stages_full: int = 0
    """Stages of the pipeline where all are in use while this role waits for copies; else 0."""
    occupation: Phase | None = None
    """The phase, no wait, in which the partner or the last warp spends most time."""
    occupation_share: float = 0.0
    """Part of its life in that phase."""
    occupation_place: str = ""
    """The source line at which most of that time begins; "" if unknown."""
    place: str = ""
    """Source position at which most of the wait begins; "" if unknown."""
    line: int = 0
    """Line of PTX at which most of these cycles begin."""
    partner_blocked: float | None = None
    """Part of the partner's life in which it waits for this role to free a stage; None if it does not wait for one."""
    last_warp_slowdown: float | None = None
    """Median time of the last warp's busiest phase over that of the other warps of the role; None if it is unknown."""
    last_warp: int | None = None
    """The warp of a block for which the others wait longest at a barrier; None where none is late."""
    last_share: float | None = None
    """Part of the time before the last warp arrives in which it is this one that is missing."""

    @property
    def barrier(self) -> str:
        """The barrier that the role waits at; the kind of barrier where its name is unknown."""
        return ", ".join(self.phase.barriers) or self.phase.work.removesuffix(" wait")

    @property
    def late_name(self) -> str | None:
        """The role or the warp that the wait is for; None if it is unknown."""
        return self.partner or (None if self.last_warp is None else f"warp {self.last_warp}")

    @property
    def share(self) -> float:
        """Part of the life of the role's warps."""
        return self.cycles / self.role_life if self.role_life else 0.0

    @property
    def finds_no_free_stage(self) -> bool:
        """True if mostly all stages are in use when the role begins to wait for a free one."""
        return self.stages_ahead is not None and 0 < self.stages_ahead < (self.stages_in_use or 0.0) + _MAX_FREE_STAGES

    @property
    def late_share(self) -> float | None:
        """Part of the matched wait in which the partner had not signaled yet."""
        matched_cycles = self.late_cycles + self.in_flight_cycles
        return self.late_cycles / matched_cycles if matched_cycles else None


@lru_cache(maxsize=2)
def waits_of(launch: LaunchPhases) -> list[Wait]:
    """Return the waits of each role and phase, longest first.

    Metrics, sentences and the view of a launch need the same waits. Few are kept, since each entry keeps its launch.
    """
    waits = [
        _make_wait(launch, role, number)
        for role in range(len(launch.roles))
        for number, phase in enumerate(launch.phases)
        if phase.activity == "wait" and len(launch.span_numbers(role, number))
    ]
    waits = [
        replace(wait, stages_full=_stages_full(launch, wait, waits), partner_blocked=_partner_blocked(wait, waits))
        for wait in waits
    ]
    return sorted(waits, key=lambda wait: -wait.cycles)


def _make_wait(launch: LaunchPhases, role: int, number: int) -> Wait:
    """Return one wait, without the fields that need the other waits (``stages_full``, ``partner_blocked``)."""
    phase, of_role, span_numbers = launch.phases[number], launch.warps.role == role, launch.span_numbers(role, number)
    spans = launch.spans.select(span_numbers)
    site = main_site(launch, spans)
    wait = Wait(
        role=launch.roles[role],
        phase=phase,
        count=len(spans),
        cycles=round((spans.cycles * launch.weight[span_numbers]).sum()),
        role_life=int((launch.warps.end - launch.warps.start)[of_role].sum()),
        place=place_of(site),
        line=site.instruction.line,
    )
    if phase.work == MBARRIER:
        return _match_partner(launch, wait)
    if phase.work in (BARRIER, NAMED_BARRIER):
        signals = sum(len(launch.span_numbers(signaling, number)) for signaling in range(len(launch.roles)))
        return replace(_add_last_warp(launch, wait, number), signal_count=signals)
    return wait


def _partner_blocked(wait: Wait, waits: Iterable[Wait]) -> float | None:
    """The part of the partner's life in which it waits for this role to free a stage; None if unknown."""
    shares = [
        partner_wait.share * (partner_wait.late_share or 0.0)
        for partner_wait in waits
        if wait.partner is not None
        and (partner_wait.role, partner_wait.partner) == (wait.partner, wait.role)
        and partner_wait.by_order
    ]
    return sum(shares) if shares else None


def _stages_full(launch: LaunchPhases, wait: Wait, waits: Iterable[Wait]) -> int:
    """The stages of the pipeline if the partner waits for this role to free one of them, since all are in use; else 0.

    This role waits for copies under way then: more stages or larger boxes would have more bytes under way.
    """
    stage_waits = (
        candidate
        for candidate in waits
        if candidate.role == wait.partner
        and candidate.partner == wait.role
        and candidate.stages_ahead
        and _may_feed(launch, candidate, wait)
    )
    is_for_copies = wait.late_share is not None and wait.late_share < _LATE_SHARE
    longest_wait = max(
        (candidate for candidate in stage_waits if candidate.finds_no_free_stage),
        key=lambda candidate: candidate.share,
        default=None,
    )
    return (
        (longest_wait.stages_ahead or 0)
        if is_for_copies and longest_wait is not None and longest_wait.share >= _NOTABLE_SHARE
        else 0
    )


def _may_feed(launch: LaunchPhases, stage_wait: Wait, wait: Wait) -> bool:
    """Return whether the barrier of a wait is the next one that code behind a wait for a free stage signals.

    Also if this barrier is unknown. Code is in the order of its lines, and begins again in a loop.
    """
    signals = [
        (site.instruction.line < stage_wait.line, site.instruction.line, site.phase.signaled)
        for site in launch.sites
        if site.phase and site.phase.loop == stage_wait.phase.loop and site.phase.signaled
    ]
    if not signals or not wait.phase.barriers:
        return True
    _, _, signaled = min(signals)
    return any(name in wait.phase.barriers for name, _ in signaled)


def _add_last_warp(launch: LaunchPhases, wait: Wait, phase: int) -> Wait:
    """The wait at a barrier with the warp that comes last: until then the others are early.

    Of several barriers in the phase, one at which the others wait longer counts more. Blocks whose warps come to it
    unequally often are left out.
    """
    cycles_by_warp, total = _late_by_warp(launch, wait.role, phase)
    wait = replace(wait, late_cycles=cycles_by_warp.total(), in_flight_cycles=total - cycles_by_warp.total())
    if not wait.late_cycles:
        return wait
    ((last_warp, cycles),) = cycles_by_warp.most_common(1)
    is_last_warp, is_role_warp = launch.warps.warp == last_warp, launch.warps.role == launch.roles.index(wait.role)
    wait = _add_occupation(
        launch, replace(wait, last_warp=last_warp, last_share=cycles / wait.late_cycles), is_last_warp
    )
    if wait.occupation is None:
        return wait
    last_warp_cycles = _median_cycles(launch, wait.occupation, is_last_warp & is_role_warp)
    other_cycles = _median_cycles(launch, wait.occupation, ~is_last_warp & is_role_warp)
    return (
        replace(wait, last_warp_slowdown=last_warp_cycles / other_cycles)
        if last_warp_cycles is not None and other_cycles
        else wait
    )


def _late_by_warp(launch: LaunchPhases, role: str, phase: int) -> tuple[Counter[int], int]:
    """The cycles that warps of a role wait at a barrier, by the warp that comes last, before it comes; and in all."""
    cycles_by_warp: Counter[int] = Counter()
    total = 0
    for block in launch.some_blocks:
        block_meetings = meetings(launch, block, phase)
        if block_meetings is None:
            continue
        of_role = [launch.roles[number] == role for number in launch.warps.role[block_meetings.warps].tolist()]
        early_cycles = (
            np.minimum(block_meetings.start_times.max(axis=0), block_meetings.end_times) - block_meetings.start_times
        )[of_role].sum(axis=0)
        total += int((block_meetings.end_times - block_meetings.start_times)[of_role].sum())
        for warp, cycles in zip(
            launch.warps.warp[block_meetings.last_warps].tolist(), early_cycles.tolist(), strict=True
        ):
            cycles_by_warp[warp] += cycles
    return cycles_by_warp, total


def _median_cycles(launch: LaunchPhases, phase: Phase, warps: NDArray[np.bool_]) -> float | None:
    """The median of the times that some warps are in a phase, by iteration; None if they never are."""
    mask = warps[launch.spans.warp] & (launch.spans.phase == launch.phases.index(phase))
    spans = launch.spans.select(mask)
    if not len(spans):
        return None
    key = spans.warp * (int(launch.iteration.max(initial=0)) + 1) + launch.iteration[mask]
    _, group = np.unique(key, return_inverse=True)
    return float(np.median(np.bincount(group, spans.cycles)))


@dataclass(frozen=True, slots=True)
class Meetings:
    """The waits of a block at a barrier: a row of ``start_times`` and ``end_times`` per warp, a column per wait.
    ``warps`` are numbers in ``LaunchPhases.warps``.
    """

    warps: NDArray[np.int64]
    start_times: NDArray[np.int64]
    end_times: NDArray[np.int64]

    @property
    def last_warps(self) -> NDArray[np.int64]:
        """The warp that comes last each time."""
        warps: NDArray[np.int64] = self.warps[self.start_times.argmax(axis=0)]
        return warps


def meetings(launch: LaunchPhases, block: int, phase: int) -> Meetings | None:
    """The waits of a block in a phase of barriers; None if its warps come there unequally often."""
    spans = launch.spans.select(launch.block_spans(block))
    spans = spans.select(spans.phase == phase)
    warps, counts = np.unique(spans.warp, return_counts=True)
    if len(warps) < 2 or len(set(counts.tolist())) > 1:
        return None
    return Meetings(warps, *(times.reshape(len(warps), -1) for times in (spans.start, spans.end)))


def _match_partner(launch: LaunchPhases, wait: Wait) -> Wait:
    """The wait with the partner whose signals end most of it; one that certainly signals its barrier, if any."""
    waiting_role = _waiting_role(launch, wait)
    partner_signals = [
        signals
        for partner in range(len(launch.roles))
        if partner != waiting_role.role
        for signals in signals_of(launch, partner, waiting_role)
    ]
    is_sure = any(signals.is_sure for signals in partner_signals)
    candidates = [_add_partner(launch, wait, signals) for signals in partner_signals if signals.is_sure == is_sure]
    best_match = max(
        (candidate for candidate in candidates if candidate is not None),
        key=lambda candidate: (candidate.by_order, candidate.late_cycles + candidate.in_flight_cycles),
        default=wait,
    )
    if best_match.partner is None:
        return best_match
    return _add_occupation(launch, best_match, launch.warps.role == launch.roles.index(best_match.partner))


def _add_occupation(launch: LaunchPhases, wait: Wait, is_late: NDArray[np.bool_]) -> Wait:
    """The wait with what keeps the warps busy that it waits for."""
    mask = is_late[launch.spans.warp] & (launch.spans.phase >= 0)
    weighted_cycles = (launch.spans.cycles * launch.weight)[mask]
    cycles = np.bincount(launch.spans.phase[mask], weighted_cycles, len(launch.phases))
    works = [
        0.0 if phase.activity == "wait" else float(cycle_count)
        for phase, cycle_count in zip(launch.phases, cycles, strict=True)
    ]
    busiest_phase = int(np.argmax(works))
    spans = launch.spans.select(mask & (launch.spans.phase == busiest_phase))
    if not len(spans):
        return wait
    share, place = works[busiest_phase] / float(cycles.sum()), place_of(main_site(launch, spans))
    return replace(wait, occupation=launch.phases[busiest_phase], occupation_share=share, occupation_place=place)


def main_site(launch: LaunchPhases, spans: Spans) -> Site:
    """The start of phases at which most cycles of these spans begin."""
    return launch.sites[int(np.argmax(np.bincount(spans.site, spans.cycles)))]


def place_of(site: Site) -> str:
    """The source position of a start; "" if unknown."""
    return source_position(site.instruction.source or site.following)


def _waiting_role(launch: LaunchPhases, wait: Wait) -> WaitingRole:
    return WaitingRole(launch.roles.index(wait.role), launch.phases.index(wait.phase))


def _add_partner(launch: LaunchPhases, wait: Wait, signals: Signals) -> Wait | None:
    """The wait as released by the signals of a role; None if no block has both."""
    partner_wait = replace(
        wait, partner=launch.roles[signals.role], signal=signals.phase(launch), signal_count=len(signals.spans)
    )
    match = match_signals(launch, _waiting_role(launch, wait), signals)
    if launch.sampling_period and (match is None or not match.by_order):
        return replace(partner_wait, signal=None) if signals.is_sure else None
    if match is None:
        return None
    signal_times = match.signaled
    late_cycles, in_flight_cycles = (
        int((signal_times - match.waits.start).sum()),
        int((match.waits.end - signal_times).sum()),
    )
    partner_wait = replace(partner_wait, late_cycles=late_cycles, in_flight_cycles=in_flight_cycles)
    if not match.by_order:
        return partner_wait
    stage_counts = match.in_use[match.in_use != UNKNOWN]
    stages = (
        float(stage_counts.mean()) if len(stage_counts) and signals.is_sure and not launch.sampling_period else None
    )
    ahead = match.rounds_ahead if signals.is_sure and (match.rounds_ahead == 0 or stages_at(wait.phase)) else None
    return replace(partner_wait, by_order=True, stages_ahead=ahead, arrivals=match.arrivals, stages_in_use=stages)


def match_of(launch: LaunchPhases, wait: Wait) -> Match | None:
    """The signals of the partner that end each wait, if matched by order; None without a partner."""
    if wait.partner is None or not wait.by_order:
        return None
    waiting_role = _waiting_role(launch, wait)
    signals = signals_of(launch, launch.roles.index(wait.partner), waiting_role)
    of_phase = (candidate for candidate in signals if candidate.phase(launch) == wait.signal)
    return next((match_signals(launch, waiting_role, candidate) for candidate in of_phase), None)

"""Waits at mbarriers: who arrives, how long warps wait before that, and how long for copies that are under way.

The release of a wait is the phase of another role that arrives at the mbarrier or issues the copy. From the wait's
start to the end of that phase the partner is late; from there on copies or the barrier itself take the time.
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
from .signals import Waiting, match_signals, signals_of, stages_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tui_probe.trace.sites import Site

    from .analysis import Phases, Spans
    from .kinds import Phase
    from .matches import Match
    from .signals import Signals

_LATE: Final = 0.5
"""Part of a wait before the partner's signal from which on the partner is late."""
_MOSTLY: Final = 0.5
"""Stages that may be free on average where all are said to be in use: none is in use at the start of a loop."""
_NOTABLE: Final = 0.1
"""Part of a role's life from which on a wait for a free stage is notable."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The waits of a role in a phase. ``cycles`` are summed over its warps, ``role_life`` are those of these warps.

    ``partner`` is the role that signals, None if there is none; ``late`` and ``in_flight`` are cycles of ``matched``
    waits before and after the partner's signal, ``by_order`` tells how they were matched: each with the signal of
    ``ahead`` waits before, which ``arrivals`` warps of the partner give. ``ahead`` is the number of stages for a role
    that waits for a free one, None if this number is unknown.
    """

    role: str
    phase: Phase
    count: int
    cycles: int
    role_life: int
    partner: str | None = None
    signal: Phase | None = None
    late: int = 0
    in_flight: int = 0
    by_order: bool = False
    ahead: int | None = None
    arrivals: int = 0
    signals: int = 0
    """Phases in which a warp arrives at the barrier or issues copies to it; at a barrier of the block, its waits."""
    stages_in_use: float | None = None
    """Stages of the pipeline that are in use when a wait begins: filled or being filled, and not free again. Mean over
    waits that are matched by order with signals of this barrier; None without such.
    """
    stages_full: int = 0
    """Stages of the pipeline where all are in use while this role waits for copies; else 0."""
    occupation: Phase | None = None
    """The phase, no wait, in which the partner or the last warp spends most time."""
    occupied: float = 0.0
    """Part of its life in that phase."""
    occupied_at: str = ""
    """The source line at which most of that time begins; "" if unknown."""
    place: str = ""
    """Source position at which most of the wait begins; "" if unknown."""
    line: int = 0
    """Line of PTX at which most of these cycles begin."""
    partner_blocked: float | None = None
    """Part of the partner's life in which it waits for this role to free a stage; None if it does not wait for one."""
    slower: float | None = None
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
    def finds_none_free(self) -> bool:
        """True if mostly all stages are in use when the role begins to wait for a free one."""
        return self.ahead is not None and 0 < self.ahead < (self.stages_in_use or 0.0) + _MOSTLY

    @property
    def late_share(self) -> float | None:
        """Part of the matched wait in which the partner had not signaled yet."""
        matched = self.late + self.in_flight
        return self.late / matched if matched else None


@lru_cache(maxsize=2)
def waits_of(launch: Phases) -> list[Wait]:
    """The waits of each role and phase, longest first."""
    waits = [
        _wait(launch, role, number)
        for role in range(len(launch.roles))
        for number, phase in enumerate(launch.phases)
        if phase.activity == "wait" and len(launch.places(role, number))
    ]
    waits = [
        replace(wait, stages_full=_stages_full(launch, wait, waits), partner_blocked=_partner_blocked(wait, waits))
        for wait in waits
    ]
    return sorted(waits, key=lambda wait: -wait.cycles)


def _wait(launch: Phases, role: int, number: int) -> Wait:
    """The waits of a role in a phase with the partner or the last warp, without what other waits tell."""
    phase, of_role, places = launch.phases[number], launch.warps.role == role, launch.places(role, number)
    spans = launch.spans.where(places)
    site = main_site(launch, spans)
    wait = Wait(
        role=launch.roles[role],
        phase=phase,
        count=len(spans),
        cycles=round((spans.cycles * launch.weight[places]).sum()),
        role_life=int((launch.warps.end - launch.warps.start)[of_role].sum()),
        place=place_of(site),
        line=site.instruction.line,
    )
    if phase.work == MBARRIER:
        return _matched(launch, wait)
    if phase.work in (BARRIER, NAMED_BARRIER):
        signals = sum(len(launch.places(other, number)) for other in range(len(launch.roles)))
        return replace(_with_last_warp(launch, wait, number), signals=signals)
    return wait


def _partner_blocked(wait: Wait, waits: Iterable[Wait]) -> float | None:
    """The part of the partner's life in which it waits for this role to free a stage; None if unknown."""
    shares = [
        other.share * (other.late_share or 0.0)
        for other in waits
        if wait.partner is not None and (other.role, other.partner) == (wait.partner, wait.role) and other.by_order
    ]
    return sum(shares) if shares else None


def _stages_full(launch: Phases, wait: Wait, waits: Iterable[Wait]) -> int:
    """The stages of the pipeline if the partner waits for this role to free one of them, since all are in use; else 0.

    This role waits for copies under way then: more stages or larger boxes would have more bytes under way.
    """
    opposite = (
        other
        for other in waits
        if other.role == wait.partner and other.partner == wait.role and other.ahead and _may_feed(launch, other, wait)
    )
    is_for_copies = wait.late_share is not None and wait.late_share < _LATE
    full = max((other for other in opposite if other.finds_none_free), key=lambda other: other.share, default=None)
    return (full.ahead or 0) if is_for_copies and full is not None and full.share >= _NOTABLE else 0


def _may_feed(launch: Phases, free: Wait, wait: Wait) -> bool:
    """Return whether the barrier of a wait is the next one that code behind a wait for a free stage signals.

    Also if this barrier is unknown. Code is in the order of its lines, and begins again in a loop.
    """
    signals = [
        (site.instruction.line < free.line, site.instruction.line, site.phase.signaled)
        for site in launch.sites
        if site.phase and site.phase.loop == free.phase.loop and site.phase.signaled
    ]
    if not signals or not wait.phase.barriers:
        return True
    _, _, signaled = min(signals)
    return any(name in wait.phase.barriers for name, _ in signaled)


def _with_last_warp(launch: Phases, wait: Wait, phase: int) -> Wait:
    """The wait at a barrier with the warp that comes last: until then the others are early.

    Of several barriers in the phase, one at which the others wait longer counts more. Blocks whose warps come to it
    unequally often are left out.
    """
    late, total = _late_by_warp(launch, wait.role, phase)
    wait = replace(wait, late=late.total(), in_flight=total - late.total())
    if not wait.late:
        return wait
    ((last, cycles),) = late.most_common(1)
    of_last, of_role = launch.warps.warp == last, launch.warps.role == launch.roles.index(wait.role)
    wait = _with_occupation(launch, replace(wait, last_warp=last, last_share=cycles / wait.late), of_last)
    if wait.occupation is None:
        return wait
    of_last_warp = _median_cycles(launch, wait.occupation, of_last & of_role)
    of_others = _median_cycles(launch, wait.occupation, ~of_last & of_role)
    return replace(wait, slower=of_last_warp / of_others) if of_last_warp is not None and of_others else wait


def _late_by_warp(launch: Phases, role: str, phase: int) -> tuple[Counter[int], int]:
    """The cycles that warps of a role wait at a barrier, by the warp that comes last, before it comes; and in all."""
    late: Counter[int] = Counter()
    total = 0
    for block in launch.some_blocks:
        met = meetings(launch, block, phase)
        if met is None:
            continue
        of_role = [launch.roles[number] == role for number in launch.warps.role[met.warps].tolist()]
        early = (np.minimum(met.starts.max(axis=0), met.ends) - met.starts)[of_role].sum(axis=0)
        total += int((met.ends - met.starts)[of_role].sum())
        for warp, cycles in zip(launch.warps.warp[met.last_warps].tolist(), early.tolist(), strict=True):
            late[warp] += cycles
    return late, total


def _median_cycles(launch: Phases, phase: Phase, warps: NDArray[np.bool_]) -> float | None:
    """The median of the times that some warps are in a phase, by iteration; None if they never are."""
    chosen = warps[launch.spans.warp] & (launch.spans.phase == launch.phases.index(phase))
    spans = launch.spans.where(chosen)
    if not len(spans):
        return None
    key = spans.warp * (int(launch.iteration.max(initial=0)) + 1) + launch.iteration[chosen]
    _, place = np.unique(key, return_inverse=True)
    return float(np.median(np.bincount(place, spans.cycles)))


@dataclass(frozen=True, slots=True)
class Meetings:
    """The waits of a block at a barrier: a row of ``starts`` and ``ends`` per warp, a column per wait. ``warps`` are
    numbers in ``Phases.warps``.
    """

    warps: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def last_warps(self) -> NDArray[np.int64]:
        """The warp that comes last each time."""
        last: NDArray[np.int64] = self.warps[self.starts.argmax(axis=0)]
        return last


def meetings(launch: Phases, block: int, phase: int) -> Meetings | None:
    """The waits of a block in a phase of barriers; None if its warps come there unequally often."""
    spans = launch.spans.where(launch.of_block(block))
    spans = spans.where(spans.phase == phase)
    warps, counts = np.unique(spans.warp, return_counts=True)
    if len(warps) < 2 or len(set(counts.tolist())) > 1:
        return None
    return Meetings(warps, *(times.reshape(len(warps), -1) for times in (spans.start, spans.end)))


def _matched(launch: Phases, wait: Wait) -> Wait:
    """The wait with the partner whose signals end most of it; one that certainly signals its barrier, if any."""
    waiting = _waiting(launch, wait)
    signaling = [
        signals
        for partner in range(len(launch.roles))
        if partner != waiting.role
        for signals in signals_of(launch, partner, waiting)
    ]
    is_sure = any(signals.is_sure for signals in signaling)
    candidates = [_with_partner(launch, wait, signals) for signals in signaling if signals.is_sure == is_sure]
    matched = max(
        (candidate for candidate in candidates if candidate is not None),
        key=lambda candidate: (candidate.by_order, candidate.late + candidate.in_flight),
        default=wait,
    )
    if matched.partner is None:
        return matched
    return _with_occupation(launch, matched, launch.warps.role == launch.roles.index(matched.partner))


def _with_occupation(launch: Phases, wait: Wait, late: NDArray[np.bool_]) -> Wait:
    """The wait with what keeps the warps busy that it waits for."""
    inside = late[launch.spans.warp] & (launch.spans.phase >= 0)
    weighted = (launch.spans.cycles * launch.weight)[inside]
    cycles = np.bincount(launch.spans.phase[inside], weighted, len(launch.phases))
    works = [
        0.0 if phase.activity == "wait" else float(cycle_count)
        for phase, cycle_count in zip(launch.phases, cycles, strict=True)
    ]
    longest = int(np.argmax(works))
    spans = launch.spans.where(inside & (launch.spans.phase == longest))
    if not len(spans):
        return wait
    share, place = works[longest] / float(cycles.sum()), place_of(main_site(launch, spans))
    return replace(wait, occupation=launch.phases[longest], occupied=share, occupied_at=place)


def main_site(launch: Phases, spans: Spans) -> Site:
    """The start of phases at which most cycles of these spans begin."""
    return launch.sites[int(np.argmax(np.bincount(spans.site, spans.cycles)))]


def place_of(site: Site) -> str:
    """The source position of a start; "" if unknown."""
    return source_position(site.instruction.source or site.following)


def _waiting(launch: Phases, wait: Wait) -> Waiting:
    return Waiting(launch.roles.index(wait.role), launch.phases.index(wait.phase))


def _with_partner(launch: Phases, wait: Wait, signals: Signals) -> Wait | None:
    """The wait as released by the signals of a role; None if no block has both."""
    known = replace(wait, partner=launch.roles[signals.role], signal=signals.phase(launch), signals=len(signals.spans))
    match = match_signals(launch, _waiting(launch, wait), signals)
    if launch.every and (match is None or not match.by_order):
        return replace(known, signal=None) if signals.is_sure else None
    if match is None:
        return None
    until = match.signaled
    late, in_flight = int((until - match.waits.start).sum()), int((match.waits.end - until).sum())
    known = replace(known, late=late, in_flight=in_flight)
    if not match.by_order:
        return known
    counted = match.in_use[match.in_use != UNKNOWN]
    stages = float(counted.mean()) if len(counted) and signals.is_sure and not launch.every else None
    ahead = match.ahead if signals.is_sure and (match.ahead == 0 or stages_at(wait.phase)) else None
    return replace(known, by_order=True, ahead=ahead, arrivals=match.arrivals, stages_in_use=stages)


def match_of(launch: Phases, wait: Wait) -> Match | None:
    """The signals of the partner that end each wait, if matched by order; None without a partner."""
    if wait.partner is None or not wait.by_order:
        return None
    waiting = _waiting(launch, wait)
    signals = signals_of(launch, launch.roles.index(wait.partner), waiting)
    of_phase = (candidate for candidate in signals if candidate.phase(launch) == wait.signal)
    return next((match_signals(launch, waiting, candidate) for candidate in of_phase), None)

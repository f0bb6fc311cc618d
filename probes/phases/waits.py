"""Waits at mbarriers: who arrives, how long warps wait before that, and how long for copies that are under way.

The release of a wait is the phase of another role that arrives at the mbarrier or issues the copy. From the wait's
start to the end of that phase the partner is late; from there on copies or the barrier itself take the time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.phase_names import BARRIER, COPIES, MBARRIER, NAMED_BARRIER
from tui_probe.trace.source_lines import source_position

from .analysis import NOT_RECORDED
from .matches import MAX_AHEAD, UNKNOWN, match_waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.sites import Site

    from .analysis import Phases, Spans
    from .kinds import Phase
    from .matches import Match

_LATE: Final = 0.5
"""Part of a wait before the partner's signal from which on the partner is late."""
_MOSTLY: Final = 0.5
"""Stages that may be free on average where all are said to be in use: none is in use at the start of a loop."""
_MAX_CHOICES: Final = 8
"""Phases among which those are chosen that signal a barrier, at most."""
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
    waits = []
    for role, name in enumerate(launch.roles):
        of_role = launch.warps.role == role
        life = int((launch.warps.end - launch.warps.start)[of_role].sum())
        for number, phase in enumerate(launch.phases):
            places = launch.places(role, number)
            if phase.activity == "wait" and len(places):
                spans = launch.spans.where(places)
                site = main_site(launch, spans)
                cycles, line = round((spans.cycles * launch.weight[places]).sum()), site.instruction.line
                wait = Wait(name, phase, len(spans), cycles, life, place=place_of(site), line=line)
                if phase.work in (BARRIER, NAMED_BARRIER):
                    signals = sum(len(launch.places(other, number)) for other in range(len(launch.roles)))
                    wait = replace(_with_last_warp(launch, wait, number), signals=signals)
                waits.append(_matched(launch, wait) if phase.work == MBARRIER else wait)
    waits = [
        replace(wait, stages_full=_stages_full(launch, wait, waits), partner_blocked=_partner_blocked(wait, waits))
        for wait in waits
    ]
    return sorted(waits, key=lambda wait: -wait.cycles)


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
    total = 0
    late: Counter[int] = Counter()
    for block in launch.some_blocks:
        met = meetings(launch, block, phase)
        if met is not None:
            of_role = [launch.roles[role] == wait.role for role in launch.warps.role[met.warps].tolist()]
            early = (np.minimum(met.starts.max(axis=0), met.ends) - met.starts)[of_role].sum(axis=0)
            total += int((met.ends - met.starts)[of_role].sum())
            for warp, cycles in zip(launch.warps.warp[met.last_warps].tolist(), early.tolist(), strict=True):
                late[warp] += cycles
    of_all = late.total()
    wait = replace(wait, late=of_all, in_flight=total - of_all)
    if not of_all:
        return wait
    ((last, cycles),) = late.most_common(1)
    of_last = launch.warps.warp == last
    wait = _with_occupation(launch, replace(wait, last_warp=last, last_share=cycles / of_all), of_last)
    if wait.occupation is None:
        return wait
    of_role = launch.warps.role == launch.roles.index(wait.role)
    times = [_median_cycles(launch, wait.occupation, warps) for warps in (of_last & of_role, ~of_last & of_role)]
    return wait if None in times or not times[1] else replace(wait, slower=(times[0] or 0.0) / times[1])


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
    signaling = [
        signals
        for partner in range(len(launch.roles))
        if launch.roles[partner] != wait.role
        for signals in _signals(launch, partner, wait)
    ]
    is_sure = any(signals.is_sure for signals in signaling)
    known = [_with_partner(launch, wait, signals) for signals in signaling if signals.is_sure == is_sure]
    partners = [partner for partner in known if partner is not None]
    matched = max(partners, key=lambda own: (own.by_order, own.late + own.in_flight), default=wait)
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


@dataclass(frozen=True, slots=True)
class _Signals:
    """Spans of a role in which it signals barriers. ``is_sure`` if these are all, else it perhaps signals others."""

    role: int
    spans: Spans
    is_sure: bool

    def phase(self, launch: Phases) -> Phase:
        """The phase with most of them."""
        return launch.phases[int(np.bincount(self.spans.phase).argmax())]


def _with_partner(launch: Phases, wait: Wait, signals: _Signals) -> Wait | None:
    """The wait as released by the signals of a role; None if no block has both."""
    known = replace(wait, partner=launch.roles[signals.role], signal=signals.phase(launch), signals=len(signals.spans))
    match = _match(launch, wait, signals)
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
    ahead = match.ahead if signals.is_sure and (match.ahead == 0 or _depth(wait.phase)) else None
    return replace(known, by_order=True, ahead=ahead, arrivals=match.arrivals, stages_in_use=stages)


def _depth(phase: Phase) -> int | None:
    """The stages of a pipeline whose barriers a phase waits at; None if they are unknown or of several pipelines."""
    return phase.stages if len(phase.barriers) == 1 else None


def match_of(launch: Phases, wait: Wait) -> Match | None:
    """The signals of the partner that end each wait, if matched by order; None without a partner."""
    if wait.partner is None or not wait.by_order:
        return None
    candidates = _signals(launch, launch.roles.index(wait.partner), wait)
    return next(
        (_match(launch, wait, candidate) for candidate in candidates if candidate.phase(launch) == wait.signal), None
    )


def _match(launch: Phases, wait: Wait, signals: _Signals) -> Match | None:
    """The waits of a phase with the signals that end them. Waits and signals of a pipeline are counted in all phases.

    Of sampled iterations, only waits and signals of the same iterations can be matched: of one phase each, by order.
    """
    role, number = launch.roles.index(wait.role), launch.phases.index(wait.phase)
    alike = _alike(launch, wait)
    spans = launch.spans.where(np.sort(np.concatenate([launch.places(role, phase) for phase in alike])))
    max_ahead = MAX_AHEAD
    if launch.every:
        of_one_phase = len(alike) == 1 and len(np.unique(signals.spans.phase)) == 1 and _meet(launch, wait, signals)
        max_ahead = 1 if of_one_phase else 0
    match = match_waits(launch, spans, signals.spans, _depth(wait.phase), max_ahead)
    phase_match = None if match is None else match.where(match.waits.phase == number)
    if (
        phase_match is not None and phase_match.by_order and not len(phase_match.waits)
    ):  # no wait has a round of signals
        match = match_waits(launch, spans, signals.spans, None, 0)
        phase_match = None if match is None else match.where(match.waits.phase == number)
    return phase_match


def _alike(launch: Phases, wait: Wait) -> set[int]:
    """The phases in which a role waits at the barriers of a wait."""
    role, barriers = launch.roles.index(wait.role), set(wait.phase.barriers)
    alike = {
        number for number, phase in enumerate(launch.phases) if phase.work == MBARRIER and barriers & {*phase.barriers}
    }
    return {phase for phase in alike | {launch.phases.index(wait.phase)} if len(launch.places(role, phase))}


def _meet(launch: Phases, wait: Wait, signals: _Signals) -> bool:
    """Return whether a role signals in one phase, or surely these barriers."""
    return signals.is_sure or len(_signals(launch, signals.role, wait)) == 1


def _signals(launch: Phases, role: int, wait: Wait) -> list[_Signals]:
    """The spans of a role that begin where code signals one of these mbarriers: of all phases, if code names any.

    Otherwise those of each phase that perhaps does: it signals an unknown mbarrier, or nothing here signals these.
    """
    known = {name for site in launch.sites if site.phase for name, _ in site.phase.signaled}
    barriers = known.intersection(wait.phase.barriers)
    names = [{name for name, _ in site.phase.signaled} if site.phase else set() for site in launch.sites]
    sure = _spans_at(launch, role, [bool(own_barriers & barriers) for own_barriers in names])
    if len(sure):
        several = np.array([len(own_barriers) > 1 for own_barriers in names], bool)
        is_known = launch.every or not several[sure.site].any()
        return [_Signals(role, sure, True) if is_known else _of_this_barrier(launch, wait, role, sure)]
    may_signal = [bool(site.phase and site.phase.signals) for site in launch.sites]
    perhaps = [may and not (own_barriers and barriers) for may, own_barriers in zip(may_signal, names, strict=True)]
    spans = _spans_at(launch, role, perhaps)
    return [_Signals(role, spans.where(spans.phase == phase), False) for phase in np.unique(spans.phase).tolist()]


def _of_this_barrier(launch: Phases, wait: Wait, role: int, signals: Spans) -> _Signals:
    """The signals of the phases that together signal as often as the other role waits, in blocks with all records.

    Code may choose among several barriers, and which one a phase signals is then only known by this number. If it is
    not that of exactly one choice of phases, all of them perhaps signal this barrier.
    """
    warps, phases = launch.warps, np.unique(signals.phase)
    is_cut = np.isin(warps.block, warps.block[launch.spans.warp[launch.spans.phase == NOT_RECORDED]])
    waiting, signaling = (
        np.flatnonzero((warps.role == number) & ~is_cut) for number in (launch.roles.index(wait.role), role)
    )
    places = np.concatenate([launch.places(launch.roles.index(wait.role), phase) for phase in _alike(launch, wait)])
    in_loop = np.array([phase.loop is not None for phase in launch.phases], bool)[launch.spans.phase[places]]
    waits = np.bincount(launch.spans.warp[places[in_loop]], minlength=len(warps.block))
    wanted = dict(zip(warps.block[waiting].tolist(), waits[waiting].tolist(), strict=True))
    expected = np.array([wanted.get(block, 0) for block in warps.block[signaling].tolist()])
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
        return _Signals(role, signals, False)
    return _Signals(role, signals.where(np.isin(signals.phase, phases[[*fitting[0]]])), True)


def _spans_at(launch: Phases, role: int, chosen: Sequence[bool]) -> Spans:
    """The spans of a role that begin at some sites. Where code signals before it waits, a span ends as it begins.

    Where code arrives at a barrier in one phase and copies in the next one, both give one signal. So do a wait that
    signals at its end and the phase behind it, and two parts of a phase: in SASS, code that may skip a loop.
    """
    phases = {number for number, phase in enumerate(launch.phases) if phase.signals}
    places = np.sort(np.concatenate([launch.places(role, phase) for phase in phases] or [np.zeros(0, np.int64)]))
    places = places[np.array(chosen, bool)[launch.spans.site[places]]]
    spans = launch.spans.where(places)
    waits, copies = (
        np.array(is_of_kind, bool)[spans.phase]
        for is_of_kind in (
            [phase.activity == "wait" for phase in launch.phases],
            [phase.work in COPIES for phase in launch.phases],
        )
    )
    begins_iteration = np.array([bool(site.phase and site.phase.iterates) for site in launch.sites], bool)[spans.site]
    goes_on = (np.diff(places) == 1) & (np.diff(spans.warp) == 0) & ~waits[1:]
    is_part = (np.diff(spans.phase) == 0) & (np.diff(spans.site) != 0) & ~begins_iteration[1:]
    goes_on &= waits[:-1] | (copies[1:] & ~copies[:-1]) | is_part
    spans = spans.where(np.append(~goes_on, np.ones(min(len(spans), 1), bool)))
    first = np.array([bool(site.phase and site.phase.signals_first) for site in launch.sites], bool)[spans.site]
    return replace(spans, end=np.where(first, spans.start, spans.end))

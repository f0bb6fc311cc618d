"""Waits at mbarriers: who arrives, how long warps wait before that, and how long for copies that are under way.

The release of a wait is the phase of another role that arrives at an mbarrier or issues the copy. Where a role waits as
often at a place as another one signals, wait k is released by signal k, else by the last signal before its end. From
the wait's start to the end of that phase the partner is late; from there on copies or the barrier itself take the time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.phase_names import BARRIER, MBARRIER, NAMED_BARRIER
from tui_probe.trace.source_lines import source_position

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from numpy.typing import NDArray

    from tui_probe.trace.sites import Site

    from .analysis import Phases, Spans
    from .kinds import Phase

_LATE: Final = 0.5
"""Part of a wait before the partner's signal from which on the partner is late."""
_MOSTLY: Final = 0.5
"""Stages that may be free on average where all are said to be in use: none is in use at the start of a loop."""
_NOTABLE: Final = 0.1
"""Part of a role's life from which on a wait for a free stage is notable."""
_MAX_AHEAD: Final = 32
"""Stages of a pipeline at most."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The waits of a role in a phase. ``cycles`` are summed over its warps, ``role_life`` are those of these warps.

    ``partner`` is the role that signals, None if there is none; ``late`` and ``in_flight`` are cycles of ``matched``
    waits before and after the partner's signal, ``by_order`` tells how they were matched: each with the signal of
    ``ahead`` waits before, which ``arrivals`` warps of the partner give.
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
    ahead: int = 0
    arrivals: int = 0
    signals: int = 0
    """Phases in which a warp arrives at the barrier or issues copies to it; at a barrier of the block, its waits."""
    stages_in_use: float | None = None
    """Stages of the pipeline that are in use when a wait begins: filled or being filled, and not free again. Mean over
    waits that are matched by order; None without such.
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
    line: int = 0
    """Line of PTX at which most of these cycles begin."""
    """Source position at which most of the wait begins; "" if unknown."""
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
        return self.stages_in_use is not None and self.stages_in_use > self.ahead - _MOSTLY

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
        own = launch.warps.role == role
        life = int((launch.warps.end - launch.warps.start)[own].sum())
        of_role = own[launch.spans.warp]
        for number, phase in enumerate(launch.phases):
            chosen = of_role & (launch.spans.phase == number)
            spans = launch.spans.where(chosen)
            if phase.activity == "wait" and len(spans):
                site = main_site(launch, spans)
                cycles, line = round((spans.cycles * launch.weight[chosen]).sum()), site.instruction.line
                wait = Wait(name, phase, len(spans), cycles, life, place=place_of(site), line=line)
                if phase.work in (BARRIER, NAMED_BARRIER):
                    signals = int((launch.spans.phase == number).sum())
                    wait = replace(_with_last_warp(launch, wait, number), signals=signals)
                waits.append(_matched(launch, wait, spans, role) if phase.work == MBARRIER else wait)
    waits = [replace(wait, stages_full=_stages_full(launch, wait, waits)) for wait in waits]
    return sorted(waits, key=lambda wait: -wait.cycles)


def _stages_full(launch: Phases, wait: Wait, waits: Iterable[Wait]) -> int:
    """The stages of the pipeline if the partner waits for this role to free one of them, since all are in use; else 0.

    This role waits for copies under way then: more stages or larger boxes would have more bytes under way.
    """
    opposite = (
        own
        for own in waits
        if own.role == wait.partner and own.partner == wait.role and own.ahead and _may_feed(launch, own, wait)
    )
    is_for_copies = wait.late_share is not None and wait.late_share < _LATE
    full = max((own for own in opposite if own.finds_none_free), key=lambda own: own.share, default=None)
    return full.ahead if is_for_copies and full is not None and full.share >= _NOTABLE else 0


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
    return _with_occupation(
        launch, replace(wait, last_warp=last, last_share=cycles / of_all), launch.warps.warp == last
    )


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
    inside = (launch.warps.block == block)[launch.spans.warp] & (launch.spans.phase == phase)
    spans = launch.spans.where(inside)
    warps, counts = np.unique(spans.warp, return_counts=True)
    if len(warps) < 2 or len(set(counts.tolist())) > 1:
        return None
    return Meetings(warps, *(times.reshape(len(warps), -1) for times in (spans.start, spans.end)))


def _matched(launch: Phases, wait: Wait, spans: Spans, role: int) -> Wait:
    """The wait with the partner whose signals end most of it."""
    candidates = [
        _with_partner(launch, wait, spans, partner, signal)
        for partner in range(len(launch.roles))
        if partner != role
        for signal, phase in enumerate(launch.phases)
        if phase.signals
    ]
    known = [own for own in candidates if own is not None]
    matched = max(known, key=lambda own: (own.by_order, own.late + own.in_flight), default=wait)
    if matched.partner is None:
        return matched
    return _with_occupation(launch, matched, launch.warps.role == launch.roles.index(matched.partner))


def _with_occupation(launch: Phases, wait: Wait, late: NDArray[np.bool_]) -> Wait:
    """The wait with what keeps the warps busy that it waits for."""
    inside = late[launch.spans.warp] & (launch.spans.phase >= 0)
    weighted = (launch.spans.cycles * launch.weight)[inside]
    cycles = np.bincount(launch.spans.phase[inside], weighted, len(launch.phases))
    works = [0.0 if phase.activity == "wait" else float(own) for phase, own in zip(launch.phases, cycles, strict=True)]
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


def _with_partner(launch: Phases, wait: Wait, spans: Spans, partner: int, signal: int) -> Wait | None:
    """The wait as released by one phase of a role; None if that never signals."""
    of_partner = signals_of(launch, partner, signal, wait.phase.barriers)
    if not len(of_partner):
        return None
    if launch.every and not _meet(launch, partner, signal, wait.phase.barriers):
        return _without_match(launch, wait, partner, of_partner)
    late = in_flight = ahead = arrivals = matched = in_use = 0
    ordered = True
    for waiting, signals in by_warp(launch, spans, of_partner):
        release, by_order = releases(waiting, signals, wait.phase.stages, _MAX_AHEAD if not launch.every else 1)
        if launch.every and not by_order:
            return _without_match(launch, wait, partner, of_partner)
        ordered &= by_order
        ahead = max(ahead, int((release < 0).sum()) if by_order else 0)
        arrivals = max(arrivals, len(np.unique(signals.warp)))
        if (rounds := _rounds(waiting, signals)) is not None:
            before = np.searchsorted(np.sort(signals.end[rounds]), waiting.start, side="right")
            in_use += int(np.abs(before - np.arange(len(waiting))).sum())
            matched += len(waiting)
        until = np.clip(_times(release, signals, waiting), waiting.start, waiting.end)
        late += int((until - waiting.start).sum())
        in_flight += int((waiting.end - until).sum())
    of, phase = launch.roles[partner], launch.phases[signal]
    known = replace(wait, partner=of, signal=phase, late=late, in_flight=in_flight, signals=len(of_partner))
    if not ordered:
        return known
    stages = in_use / matched if matched and not launch.every else None
    return replace(known, by_order=True, ahead=ahead, arrivals=arrivals, stages_in_use=stages)


def _meet(launch: Phases, role: int, phase: int, barriers: Collection[str]) -> bool:
    """Return whether recorded waits may be matched with recorded signals of the same iterations: the role signals these
    barriers in one loop only, all of whose phases are recorded in the same iterations as those of the wait.
    """
    signaling = (own for own, other in enumerate(launch.phases) if other.signals and own != phase)
    return not any(len(signals_of(launch, role, own, barriers)) for own in signaling)


def _without_match(launch: Phases, wait: Wait, partner: int, signals: Spans) -> Wait | None:
    """The wait with the partner that the name of its barrier tells, if any; nothing tells when this signaled."""
    known = {name for site in launch.sites if site.phase for name, _ in site.phase.signaled}
    if not known.intersection(wait.phase.barriers):
        return None
    return replace(wait, partner=launch.roles[partner], signals=len(signals))


def signals_of(launch: Phases, role: int, phase: int, barriers: Collection[str]) -> Spans:
    """The spans of a role in a phase that begin where code signals one of these mbarriers, or perhaps does.

    Where it signals before it waits, a span ends as it begins.
    """
    known = {name for site in launch.sites if site.phase for name, _ in site.phase.signaled}
    barriers = known.intersection(barriers)  # at a barrier that nothing here signals, any signal may be for the wait
    signals = np.array([_may_signal(site, barriers) for site in launch.sites], bool)
    of_role = (launch.warps.role == role)[launch.spans.warp]
    spans = launch.spans.where(of_role & (launch.spans.phase == phase) & signals[launch.spans.site])
    first = np.array([bool(site.phase and site.phase.signals_first) for site in launch.sites], bool)[spans.site]
    return replace(spans, end=np.where(first, spans.start, spans.end))


def _may_signal(site: Site, barriers: Collection[str]) -> bool:
    """Return whether code from a site on arrives at one of some mbarriers, or at unknown ones."""
    if site.phase is None or not site.phase.signals:
        return False
    names = [name for name, _ in site.phase.signaled]
    return not names or not barriers or any(name in barriers for name in names)


def by_warp(launch: Phases, spans: Spans, signals: Spans) -> Iterator[tuple[Spans, Spans]]:
    """The waits of each warp of some blocks, with the signals of the block.

    Of warps that kept only their first records, as many waits as each of the other role's warps kept signals.
    """
    is_cut = launch.starts_kept < launch.starts_seen and not launch.keeps_last
    for block in launch.some_blocks:
        inside = launch.warps.block == block
        here = signals.where(inside[signals.warp])
        for warp in np.flatnonzero(inside).tolist():
            own = spans.where(spans.warp == warp)
            if len(own) and len(here):
                yield _common_part(own, here) if is_cut else (own, here)


def _common_part(waiting: Spans, signals: Spans) -> tuple[Spans, Spans]:
    """The first waits of a warp and as many signals of each warp; all of them if they are not equally frequent.

    They are if, at the time of the first last record, their numbers differ by the stages of a pipeline at most.
    """
    _, first, counts = np.unique(signals.warp, return_index=True, return_counts=True)
    common = min(len(waiting), int(counts.min()))
    until = min(int(waiting.end[-1]), int(signals.end[first + counts - 1].min()))
    ended = [int((own <= until).sum()) for own in (waiting.end, *np.split(signals.end, first[1:]))]
    if common <= _MAX_AHEAD or max(ended) - min(ended) > _MAX_AHEAD:
        return waiting, signals
    is_matched = np.arange(len(signals)) - np.repeat(first, counts) < common
    return waiting.where(np.arange(len(waiting)) < common), signals.where(is_matched)


def releases(
    waiting: Spans, signals: Spans, stages: int | None, max_ahead: int = _MAX_AHEAD
) -> tuple[NDArray[np.int64], bool]:
    """The number of the signal that releases each wait, -1 for none, and whether they were matched by their order.

    A role that may run ahead waits for signals of earlier waits. The distance is the number of ``stages``; if they are
    unknown, the least that explains all ends. It is below ``max_ahead``: only signals of the same iterations are
    recorded where iterations are sampled.
    """
    last = _rounds(waiting, signals)
    if last is not None:
        for ahead in range(min(max_ahead, len(waiting))):
            released = last[: len(waiting) - ahead]
            if (signals.start[released] <= waiting.end[ahead:]).all():
                ahead = min(max(ahead, stages or 0), len(waiting)) if ahead else 0
                return np.concatenate((np.full(ahead, -1, np.int64), last[: len(waiting) - ahead])), True
    order = np.argsort(signals.end, kind="stable")
    place = np.searchsorted(signals.end[order], waiting.end, side="right") - 1
    return np.where(place >= 0, order[place.clip(0)], -1), False


def _rounds(waiting: Spans, signals: Spans) -> NDArray[np.int64] | None:
    """The last signal of each round, a round being a signal of each warp that signals; None if there are not as many
    rounds as waits.
    """
    warps = np.unique(signals.warp)
    if len(signals) != len(waiting) * len(warps):
        return None
    numbers = np.argsort(signals.warp, kind="stable").reshape(len(warps), len(waiting))
    last: NDArray[np.int64] = numbers[signals.end[numbers].argmax(axis=0), np.arange(len(waiting))]
    return last


def _times(release: NDArray[np.int64], signals: Spans, waiting: Spans) -> NDArray[np.int64]:
    """The ends of the signals; of a wait without one its own start."""
    return np.where(release >= 0, signals.end[release], waiting.start)

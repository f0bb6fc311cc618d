"""Phases as rows: what the sites of one phase have in common, its name, and its letter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.ptx.work_kinds import ACCESSES, COMPUTES, KINDS, LOADS, OTHER, WAITS
from tui_probe.trace.source_lines import source_position

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tui_probe.trace.sites import Site, SitePhase

Activity = Literal["load", "compute", "wait", "store", "other"]
ACTIVITIES: Final[tuple[Activity, ...]] = ("load", "compute", "wait", "store", "other")
_STORES: Final = ("global store", "shared store")
_LETTERS: Final = ascii_uppercase + ascii_lowercase
_MANY: Final = "*"
_MAX_TENSORS: Final = 3
"""Tensors in the name of a phase."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a kernel. ``loop`` is the line in pruned.ptx of its innermost loop, ``lines`` those of its starts.

    ``number`` is that of the loop among those of its role, 0 for the only one. ``signals``: its code arrives at an
    mbarrier, or issues a copy that does. ``letter`` stands for it in lanes. ``is_named``: ``work`` is the user's name.
    """

    letter: str
    work: str
    stage: str
    loop: int | None
    depth: int
    number: int
    lines: tuple[int, ...]
    places: tuple[str, ...]
    signals: bool
    instructions: int
    moved: int
    is_named: bool
    waits: tuple[str, ...] = ()
    """Kinds of waits inside, of a phase that the user named."""
    parameters: tuple[int, ...] = ()
    """Numbers of the kernel's parameters whose memory it accesses."""
    tensors: tuple[str, ...] = ()
    """Names of that memory in the launch."""

    @property
    def is_other(self) -> bool:
        """True if nothing names what it does but its stage in a loop."""
        return self.work == OTHER and self.stage == "loop"

    @property
    def activity(self) -> Activity:
        """The side of the pipeline that it is on."""
        if self.is_named:
            return "other"
        if self.work in WAITS:
            return "wait"
        if self.work in LOADS:
            return "load"
        return "compute" if self.work in COMPUTES else "store" if self.work in _STORES else "other"

    @property
    def name(self) -> str:
        """``loop: mbarrier wait``, ``prologue``; a phase of the user's as the user called it."""
        if self.is_named:
            return self.work
        where = f"{self.stage} {self.number}" if self.number else self.stage
        text = where if self.work == OTHER else f"{where}: {self.work}"
        if not self.tensors or self.work not in ACCESSES:
            return text
        more = ", …" if len(self.tensors) > _MAX_TENSORS else ""
        return f"{text} of {', '.join(self.tensors[:_MAX_TENSORS])}{more}"

    @property
    def place(self) -> str:
        """The source line of its first start; "" if unknown."""
        return self.places[0] if self.places else ""


def phases_of(sites: Sequence[Site]) -> tuple[tuple[Phase, ...], list[int]]:
    """The phases of these sites in order, and of each site the number of its phase."""
    groups: dict[tuple[object, ...], list[Site]] = {}
    for site in sites:
        groups.setdefault(_key(site), []).append(site)
    phases = tuple(_phase(number, own) for number, own in enumerate(groups.values()))
    numbers = {key: number for number, key in enumerate(groups)}
    return phases, [numbers[_key(site)] for site in sites]


def numbered(phases: Iterable[Phase], loops_of_roles: Iterable[Collection[int]]) -> tuple[Phase, ...]:
    """Phases with the numbers of their loops, where a role has several."""
    numbers: dict[int, int] = {}
    for loops in loops_of_roles:
        for number, loop in enumerate(sorted(loops) if len(loops) > 1 else (), 1):
            numbers[loop] = max(number, numbers.get(loop, 0))
    return tuple(replace(phase, number=numbers.get(phase.loop or 0, 0)) for phase in phases)


def _key(site: Site) -> tuple[object, ...]:
    phase = site.phase
    assert phase is not None
    return (phase.work,) if _is_named(phase) else (phase.work, phase.stage, phase.loop)


def _is_named(phase: SitePhase) -> bool:
    return phase.named or phase.work not in KINDS


def _phase(number: int, sites: Sequence[Site]) -> Phase:
    first = sites[0].phase
    assert first is not None
    known = [site.phase for site in sites if site.phase]
    sources = (site.instruction.source or site.following for site in sites)
    places = dict.fromkeys(position for source in sources if (position := source_position(source)))
    letter = _LETTERS[number] if number < len(_LETTERS) else _MANY
    parts = {(own.stage, own.loop): (own.instructions, own.moved) for own in known}
    return Phase(
        letter, first.work, first.stage, first.loop, first.depth, 0,
        tuple(site.instruction.line for site in sites), tuple(places), any(own.signals for own in known),
        sum(instructions for instructions, _ in parts.values()), sum(moved for _, moved in parts.values()),
        _is_named(first), tuple(dict.fromkeys(wait for own in known for wait in own.waits)),
        tuple(sorted({number for own in known for number in own.parameters})),
    )  # fmt: skip

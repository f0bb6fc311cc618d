"""Phases as rows: what the sites of one phase have in common, its name, and its letter."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.ptx.phases import KINDS, LOADS, OTHER, PRODUCTS, WAITS
from tui_probe.trace.source_lines import source_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.trace.sites import Site

Activity = Literal["load", "compute", "wait", "store", "other"]
ACTIVITIES: Final[tuple[Activity, ...]] = ("load", "compute", "wait", "store", "other")
_COMPUTES: Final = (PRODUCTS, "exponential", "reduction", "compute")
_STORES: Final = ("global store", "shared store")
_LETTERS: Final = ascii_uppercase + ascii_lowercase
_MANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a kernel. ``loop`` is the line in pruned.ptx of its innermost loop, ``lines`` those of its starts.

    ``signals``: its code arrives at an mbarrier, or issues a copy that does. ``letter`` stands for it in lanes.
    """

    letter: str
    work: str
    stage: str
    loop: int | None
    depth: int
    lines: tuple[int, ...]
    places: tuple[str, ...]
    signals: bool
    instructions: int
    moved: int

    @property
    def is_named(self) -> bool:
        """True if the user named it."""
        return self.work not in KINDS

    @property
    def is_other(self) -> bool:
        """True if nothing names what it does but its stage in a loop."""
        return self.work == OTHER and self.stage == "loop"

    @property
    def activity(self) -> Activity:
        """The side of the pipeline that it is on."""
        if self.work in WAITS:
            return "wait"
        if self.work in LOADS:
            return "load"
        return "compute" if self.work in _COMPUTES else "store" if self.work in _STORES else "other"

    @property
    def name(self) -> str:
        """``loop: mbarrier wait``, ``prologue``; a phase of the user's as the user called it."""
        if self.is_named:
            return self.work
        where = self.stage if self.depth < 2 else f"{self.stage} {self.depth}"
        return where if self.work == OTHER else f"{where}: {self.work}"

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


def _key(site: Site) -> tuple[object, ...]:
    phase = site.phase
    assert phase is not None
    return (phase.work,) if phase.work not in KINDS else (phase.work, phase.stage, phase.loop)


def _phase(number: int, sites: Sequence[Site]) -> Phase:
    first = sites[0].phase
    assert first is not None
    known = [site.phase for site in sites if site.phase]
    sources = (site.instruction.source or site.following for site in sites)
    places = dict.fromkeys(position for source in sources if (position := source_position(source)))
    letter = _LETTERS[number] if number < len(_LETTERS) else _MANY
    parts = {(own.stage, own.loop): (own.instructions, own.moved) for own in known}
    return Phase(
        letter, first.work, first.stage, first.loop, first.depth,
        tuple(site.instruction.line for site in sites), tuple(places), any(own.signals for own in known),
        sum(instructions for instructions, _ in parts.values()), sum(moved for _, moved in parts.values()),
    )  # fmt: skip

"""Phases as rows, with name and letter, and roles: warps that run the same loops, named by what these loops do."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tui_probe.ptx.phase_names import (
    ACCESSES,
    COMPUTES,
    COPIES,
    KINDS,
    LOADS,
    MBARRIER,
    NAMED_BARRIER,
    OTHER_WORK,
    PRODUCTS,
    TILE_REQUEST,
    WAITS,
)
from tui_probe.trace.source_lines import source_position

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.sites import Site, SitePhase

_BARRIER_COUNT: Final = re.compile(r"\[(\d+)\]$")
Activity = Literal["load", "compute", "wait", "store", "other"]
ACTIVITIES: Final[tuple[Activity, ...]] = ("load", "compute", "wait", "store", "other")
_STORES: Final = ("global store", "shared store")
_LETTERS: Final = ascii_uppercase + ascii_lowercase
_SHARED_LETTER: Final = "*"
_MAX_TENSORS: Final = 3
"""Tensors in the name of a phase."""
ALL_WARPS: Final = "all warps"
_MAX_NAMES: Final = 2
NO_LOOP: Final = "no loop"
_STORE: Final = "global store"


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a kernel. ``loop`` is the line in pruned.ptx of its innermost loop, ``lines`` those of its starts.

    ``loop_number`` is that of the loop among those of its role, 0 for the only one. ``is_signal``: its code arrives at
    an mbarrier, or issues a copy that does. ``letter`` stands for it in lanes. ``is_named``: ``work`` is the user's
    name.
    """

    letter: str
    work: str
    stage: str
    loop: int | None
    depth: int
    loop_number: int
    lines: tuple[int, ...]
    places: tuple[str, ...]
    is_signal: bool
    instructions: int
    moved_count: int
    is_named: bool
    waits: tuple[str, ...] = ()
    """Kinds of waits inside, of a phase that the user named."""
    parameters: tuple[int, ...] = ()
    """Numbers of the kernel's parameters whose memory it accesses; of a wait, those that the copies are from."""
    barriers: tuple[str, ...] = ()
    """Shared variables with the mbarriers that it waits for, with the number of mbarriers: ``full[2]``; ``barrier 1``
    at a named barrier. A wait at other barriers is another phase.
    """
    tensors: tuple[str, ...] = ()
    """Names of that memory in the launch."""

    @property
    def stages(self) -> int | None:
        """The mbarriers of each array that it waits at: the stages of a pipeline; None if their number is unknown."""
        counts = {int(match[1]) if (match := _BARRIER_COUNT.search(name)) else None for name in self.barriers}
        return counts.pop() if len(counts) == 1 else None

    @property
    def is_other(self) -> bool:
        """True if nothing names what it does but its stage in a loop."""
        return self.work == OTHER_WORK and self.stage == "loop"

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
        """``loop: full[2] wait``, ``prologue``; a phase of the user's as the user called it."""
        if self.is_named:
            return self.work
        stage_text = f"{self.stage} {self.loop_number}" if self.loop_number else self.stage
        text = stage_text if self.work == OTHER_WORK else f"{stage_text}: {self.work_text}"
        if not self.tensors or self.work not in ACCESSES:
            return text
        ellipsis = ", …" if len(self.tensors) > _MAX_TENSORS else ""
        return f"{text} of {', '.join(self.tensors[:_MAX_TENSORS])}{ellipsis}"

    @property
    def work_text(self) -> str:
        """``named barrier 1 wait``, ``full[2] wait``, where the barrier is known; else the work."""
        names = ", ".join(name.removeprefix("barrier ") for name in self.barriers)
        if self.work not in (NAMED_BARRIER, MBARRIER) or not names:
            return self.work
        return f"{'named barrier ' if self.work == NAMED_BARRIER else ''}{names} wait"

    @property
    def place(self) -> str:
        """The source line of its first start; "" if unknown."""
        return self.places[0] if self.places else ""


def phases_of(sites: Sequence[Site]) -> tuple[tuple[Phase, ...], list[int]]:
    """The phases of these sites in order, and of each site the number of its phase."""
    groups: dict[tuple[object, ...], list[Site]] = {}
    for site in sites:
        groups.setdefault(_phase_key(site), []).append(site)
    phases = tuple(
        _add_copied_parameters(_make_phase(number, site_group), sites)
        for number, site_group in enumerate(groups.values())
    )
    numbers = {key: number for number, key in enumerate(groups)}
    return phases, [numbers[_phase_key(site)] for site in sites]


def _add_copied_parameters(phase: Phase, sites: Sequence[Site]) -> Phase:
    """A wait at an mbarrier with the parameters that copies to it are from."""
    if phase.work != MBARRIER:
        return phase
    signaled = (barrier for site in sites if site.phase for barrier in site.phase.signaled)
    numbers = {number for name, numbers in signaled if name in phase.barriers for number in numbers}
    return replace(phase, parameters=tuple(sorted(numbers)))


def number_loops(phases: Iterable[Phase], loops_of_roles: Iterable[Collection[int]]) -> tuple[Phase, ...]:
    """Phases with the numbers of their loops, where a role has several."""
    numbers: dict[int, int] = {}
    for loops in loops_of_roles:
        for number, loop in enumerate(sorted(loops) if len(loops) > 1 else (), 1):
            numbers[loop] = max(number, numbers.get(loop, 0))
    return tuple(replace(phase, loop_number=numbers.get(phase.loop or 0, 0)) for phase in phases)


def _phase_key(site: Site) -> tuple[object, ...]:
    phase = site.phase
    assert phase is not None
    if _is_named(phase):
        return (phase.work,)
    return phase.work, phase.stage, phase.loop, phase.barriers if phase.work in (NAMED_BARRIER, MBARRIER) else ()


def _is_named(phase: SitePhase) -> bool:
    return phase.is_named or phase.work not in KINDS


def _make_phase(number: int, sites: Sequence[Site]) -> Phase:
    first_start = sites[0].phase
    assert first_start is not None
    starts = [site.phase for site in sites if site.phase]
    sources = (site.instruction.source or site.following for site in sites)
    places = dict.fromkeys(position for source in sources if (position := source_position(source)))
    letter = _LETTERS[number] if number < len(_LETTERS) else _SHARED_LETTER
    parts = {(start.stage, start.loop): (start.instructions, start.moved_instructions) for start in starts}
    return Phase(
        letter, first_start.work, first_start.stage, first_start.loop, first_start.depth, 0,
        tuple(site.instruction.line for site in sites), tuple(places), any(start.signals for start in starts),
        sum(instructions for instructions, _ in parts.values()), sum(moved_count for _, moved_count in parts.values()),
        _is_named(first_start), tuple(dict.fromkeys(wait for start in starts for wait in start.waits)),
        tuple(sorted({number for start in starts for number in start.parameters})),
        tuple(dict.fromkeys(name for start in starts for name in start.barriers)),
    )  # fmt: skip


def roles_of(
    warp_of: NDArray[np.int64], phase_of: NDArray[np.int64], phases: Sequence[Phase], warp_count: int
) -> tuple[NDArray[np.int64], tuple[str, ...], tuple[frozenset[int], ...]]:
    """The role of each warp as a number, and names and loops of the roles in the order in which warps have them.

    ``warp_of`` and ``phase_of`` are the warp and the phase of each span, -1 for none.
    """
    loops: list[set[int]] = [set() for _ in range(warp_count)]
    has_entered = np.zeros((warp_count, len(phases) + 1), bool)
    has_entered[warp_of, phase_of] = True
    for warp, phase in np.argwhere(has_entered[:, : len(phases)]).tolist():
        if (loop := phases[phase].loop) is not None:
            loops[warp].add(loop)
    role_numbers = {heads: number for number, heads in enumerate(dict.fromkeys(map(frozenset, loops)))}
    role = np.array([role_numbers[frozenset(heads)] for heads in loops], np.int64)
    if len(role_numbers) == 1:
        return role, (ALL_WARPS,), tuple(role_numbers)
    works = [{phase.work for phase in phases if phase.loop in heads and not phase.is_named} for heads in role_numbers]
    names = [
        _given_role_name(heads, phases) or _role_name(works[place], works[:place] + works[place + 1 :])
        for place, heads in enumerate(role_numbers)
    ]
    return role, tuple(_number_equal_names(names)), tuple(role_numbers)


def _given_role_name(loops: frozenset[int], phases: Sequence[Phase]) -> str:
    """The first phases in these loops that the user named; "" without any."""
    names = dict.fromkeys(phase.work for phase in phases if phase.is_named and phase.loop in loops)
    return "+".join(list(names)[:_MAX_NAMES])


def _role_name(works: set[str], other_roles: Sequence[set[str]]) -> str:
    """The name of a role by the kinds of work in its loops, and in those of the other roles.

    A role that copies what others wait for is the producer, even if it computes. One that stores what others multiply
    is the epilogue. One that requests the next tile, and neither copies nor computes, is the scheduler.
    """
    if not works:
        return NO_LOOP
    computes = bool(works & set(COMPUTES))
    if TILE_REQUEST in works and not works & {*LOADS, *COMPUTES}:
        return "scheduler"
    feeds_others = bool(works & set(COPIES)) and any(
        MBARRIER in other_works and not other_works & set(COPIES) for other_works in other_roles
    )
    if PRODUCTS not in works and (feeds_others or (works & set(LOADS) and not computes)):
        return "producer"
    if (
        _STORE in works
        and PRODUCTS not in works
        and any(PRODUCTS in other_works and _STORE not in other_works for other_works in other_roles)
    ):
        return "epilogue"
    if MBARRIER in works or computes:
        return "consumer"
    return "store" if works & {_STORE, "shared store"} else "other"


def _number_equal_names(names: Iterable[str]) -> list[str]:
    """Names, with numbers where several are the same: ``consumer 1``, ``consumer 2``."""
    name_list = list(names)
    count, occurrences = Counter(name_list), Counter[str]()
    unique_names = []
    for name in name_list:
        occurrences[name] += 1
        unique_names.append(f"{name} {occurrences[name]}" if count[name] > 1 else name)
    return unique_names

"""Roles of warps: warps that run the same loops have one role, named by what these loops do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.work_kinds import COMPUTES, COPIES, LOADS, PRODUCTS, TILE_REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from .kinds import Phase

ALL: Final = "all warps"
_MAX_NAMES: Final = 2
_NO_LOOP: Final = "no loop"
_MBARRIER: Final = "mbarrier wait"
_STORE: Final = "global store"


def roles_of(
    warp_of: NDArray[np.int64], phase_of: NDArray[np.int64], phases: Sequence[Phase], warps: int
) -> tuple[NDArray[np.int64], tuple[str, ...], tuple[frozenset[int], ...]]:
    """The role of each warp as a number, and names and loops of the roles in the order in which warps have them.

    ``warp_of`` and ``phase_of`` are the warp and the phase of each span, -1 for none.
    """
    loops: list[set[int]] = [set() for _ in range(warps)]
    for warp, phase in np.unique(np.stack([warp_of, phase_of]), axis=1).T.tolist():
        if phase >= 0 and (loop := phases[phase].loop) is not None:
            loops[warp].add(loop)
    alike = {own: number for number, own in enumerate(dict.fromkeys(map(frozenset, loops)))}
    role = np.array([alike[frozenset(own)] for own in loops], np.int64)
    if len(alike) == 1:
        return role, (ALL,), tuple(alike)
    works = [{phase.work for phase in phases if phase.loop in own and not phase.is_named} for own in alike]
    names = [
        _given_name(own, phases) or _name(works[place], works[:place] + works[place + 1 :])
        for place, own in enumerate(alike)
    ]
    return role, tuple(_numbered(names)), tuple(alike)


def _given_name(loops: frozenset[int], phases: Sequence[Phase]) -> str:
    """The first phases in these loops that the user named; "" without any."""
    names = dict.fromkeys(phase.work for phase in phases if phase.is_named and phase.loop in loops)
    return "+".join(list(names)[:_MAX_NAMES])


def _name(works: set[str], others: Sequence[set[str]]) -> str:
    """The name of a role by the kinds of work in its loops, and in those of the other roles.

    A role that copies what others wait for is the producer, even if it computes. One that stores what others multiply
    is the epilogue. One that requests the next tile, and neither copies nor computes, is the scheduler.
    """
    if not works:
        return _NO_LOOP
    computes = bool(works & set(COMPUTES))
    if TILE_REQUEST in works and not works & {*LOADS, *COMPUTES}:
        return "scheduler"
    feeds = bool(works & set(COPIES)) and any(_MBARRIER in own and not own & set(COPIES) for own in others)
    if PRODUCTS not in works and (feeds or (works & set(LOADS) and not computes)):
        return "producer"
    if _STORE in works and PRODUCTS not in works and any(PRODUCTS in own and _STORE not in own for own in others):
        return "epilogue"
    if _MBARRIER in works or computes:
        return "consumer"
    return "store" if works & {_STORE, "shared store"} else "other"


def _numbered(names: Iterable[str]) -> list[str]:
    """Names, with numbers where several are the same: ``consumer 1``, ``consumer 2``."""
    given = list(names)
    count, seen = Counter(given), Counter[str]()
    numbered = []
    for name in given:
        seen[name] += 1
        numbered.append(f"{name} {seen[name]}" if count[name] > 1 else name)
    return numbered

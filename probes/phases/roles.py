"""Roles of warps: warps that run the same loops have one role, named by what these loops do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.ptx.phases import LOADS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from .kinds import Phase

ALL: Final = "all warps"
_NO_LOOP: Final = "no loop"


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
    return role, tuple(_numbered(_name(own, phases) for own in alike)), tuple(alike)


def _name(loops: Iterable[int], phases: Sequence[Phase]) -> str:
    own = set(loops)
    inside = [phase for phase in phases if phase.loop in own]
    if not inside:
        return _NO_LOOP
    activities = {phase.activity for phase in inside}
    loads = any(phase.work in LOADS for phase in inside)
    if loads and "compute" not in activities:
        return "producer"
    if any("mbarrier" in phase.work for phase in inside) or "compute" in activities:
        return "consumer"
    return "store" if "store" in activities else "other"


def _numbered(names: Iterable[str]) -> list[str]:
    """Names, with numbers where several are the same: ``consumer 1``, ``consumer 2``."""
    given = list(names)
    count, seen = Counter(given), Counter[str]()
    numbered = []
    for name in given:
        seen[name] += 1
        numbered.append(f"{name} {seen[name]}" if count[name] > 1 else name)
    return numbered

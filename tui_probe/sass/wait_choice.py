"""Choose the wait sites of a kernel that one launch measures, in groups.

A site that is measured delays what comes behind it, so it shortens the waits of loads that are under way: no two sites
of a group are in the shadow of one load. Sites that usually wait longest come first, those in loops before others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.sass.graft import MOVABLE_OPERATIONS
from tui_probe.sass.nv_info import COOPERATIVE_INSTRUCTIONS, MBARRIER_INSTRUCTIONS, WARP_WIDE_INSTRUCTIONS
from tui_probe.sass.wait_classes import OPERANDS
from tui_probe.sass.words import CONTROL_FLOW, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_probe.sass.scoreboards import WaitSite
    from tui_probe.sass.target import GraftTarget

MAX_SITES: Final = 8
"""Sites of a group: more would slow loops down too much."""
_EXPECTED_CYCLES: Final = {
    **dict.fromkeys(("async", "bulk", "wgmma", "tcgen05", "barrier", "cluster", "mbarrier"), 400),
    **dict.fromkeys(("global", "generic", "local", "texture", "fence", "sleep"), 300),
    "shared": 30,
    **dict.fromkeys(("tensor", "fp64", "math", "shuffle", "register", "other"), 15),
    OPERANDS: 5,
    "constant": 4,
}
_ITERATIONS: Final = 8
"""Factor for each loop around a site."""
_MOST_DEPTH: Final = 4
_LISTS: Final = frozenset({COOPERATIVE_INSTRUCTIONS, MBARRIER_INSTRUCTIONS, WARP_WIDE_INSTRUCTIONS})
_ADDRESS_OF_CODE: Final = frozenset({0x14E, 0x1CE})
"""LEPC, ULEPC."""


def movable_sites(target: GraftTarget, sites: Iterable[WaitSite]) -> list[WaitSite]:
    """Return the sites whose instruction may be replaced with a branch, those first that usually wait longest."""
    fixed = fixed_offsets(target)
    movable = [site for site in sites if site.at not in fixed and _is_movable(target, site)]
    return sorted(movable, key=lambda site: (-_expected_cycles(site), site.index))


def choose_group(ranked: Sequence[WaitSite], group: int, size: int = MAX_SITES) -> list[WaitSite]:
    """Return the sites of group number ``group``, from 0 on, in order of the code."""
    left = list(ranked)
    chosen: list[WaitSite] = []
    for _ in range(group + 1):
        chosen = []
        for site in left:
            if len(chosen) < size and not any(_disturb(site, other) for other in chosen):
                chosen.append(site)
        left = [site for site in left if site not in chosen]
    return sorted(chosen, key=lambda site: site.index)


def _disturb(site: WaitSite, other: WaitSite) -> bool:
    return _is_in_shadow(site, other) or _is_in_shadow(other, site)


def _is_in_shadow(site: WaitSite, other: WaitSite) -> bool:
    """Return whether ``site`` is between ``other`` and a load that ``other`` waits for, perhaps one of an earlier
    iteration.
    """
    return any(
        _is_behind(site, other, producer.index) if producer.from_previous else producer.index < site.index < other.index
        for producer in other.producers
        if producer.kind == other.kind
    )


def _is_behind(site: WaitSite, other: WaitSite, producer: int) -> bool:
    """Return whether a site is on the way from a load over the back edge of the loop to ``other``."""
    same_loop = bool(other.loops) and other.loops[0] in site.loops
    return same_loop and not other.index < site.index < producer


def _expected_cycles(site: WaitSite) -> int:
    iterations: int = _ITERATIONS ** min(site.depth, _MOST_DEPTH)
    return _EXPECTED_CYCLES[site.kind] * iterations


def _is_movable(target: GraftTarget, site: WaitSite) -> bool:
    word = target.words[site.index]
    if word.never_runs or word.operation in _ADDRESS_OF_CODE:
        return False
    return word.operation not in CONTROL_FLOW or (word.operation in MOVABLE_OPERATIONS and site.own is None)


def fixed_offsets(target: GraftTarget) -> set[int]:
    """Return the offsets that the file names, and 0."""
    listed = (attribute.words() for attribute in target.attributes if attribute.number in _LISTS)
    fixed = {0, *(offset for offsets in listed for offset in offsets)}
    for section in target.cubin.relocation_sections():
        if section.info == target.code.number:
            relocations = target.cubin.relocations(section)
            fixed.update(relocation.offset // WORD_BYTES * WORD_BYTES for relocation in relocations)
    return fixed

"""Wait sites of SASS: where warps wait, for which earlier instructions, and which sites one launch measures.

A launch measures a group of sites. A site that is measured delays what comes behind it, so it shortens the waits of
loads that are under way: no two sites of a group are in the shadow of one load. Sites that usually wait longest come
first, those in loops before others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.graft import MOVABLE_OPERATIONS
from tui_probe.sass.nv_info import (
    COOPERATIVE_INSTRUCTIONS,
    MBARRIER_INSTRUCTIONS,
    WARP_WIDE_INSTRUCTIONS,
    listed_offsets,
)
from tui_probe.sass.operations import operation_name
from tui_probe.sass.scoreboards import ProducerSearch
from tui_probe.sass.wait_classes import OPERANDS, WAIT_CLASSES, WARPGROUP_PRODUCTS, awaited_barriers, own_wait
from tui_probe.sass.words import BARRIER_COUNT, CONTROL_FLOW, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.sass.scoreboards import Producer
    from tui_probe.sass.target import GraftTarget

_RANK: Final = {key: rank for rank, key in enumerate(WAIT_CLASSES)}
"""Places of the classes of waits, those that usually take longest first."""
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
"""Cycles of a usual wait, by class: they only rank sites."""
_ITERATIONS: Final = 8
"""Assumed iterations of each loop around a site."""
_MAX_DEPTH: Final = 4
"""Loops that count: beyond, the product says nothing."""
_OFFSET_LISTS: Final = frozenset({COOPERATIVE_INSTRUCTIONS, MBARRIER_INSTRUCTIONS, WARP_WIDE_INSTRUCTIONS})
_ADDRESS_OF_CODE: Final = frozenset({0x14E, 0x1CE})
"""LEPC, ULEPC."""


@dataclass(frozen=True, slots=True)
class WaitSite:
    """An instruction at which warps wait."""

    index: int
    barriers: tuple[int, ...]
    """Scoreboards that must be 0."""
    own_class: str | None
    """The class of what it waits for without a scoreboard; None if it does not."""
    producers: tuple[Producer, ...]
    """Ordered as in the code."""
    loops: tuple[int, ...]
    """Loops around it by the block of their header, the innermost first."""

    @property
    def offset(self) -> int:
        """Byte offset in the kernel's code."""
        return self.index * WORD_BYTES

    @property
    def depth(self) -> int:
        """Number of loops around it."""
        return len(self.loops)

    @property
    def kind(self) -> str:
        """The class that usually takes longest of what it waits for."""
        kinds = {producer.kind for producer in self.producers}
        if self.own_class == "async":  # the instruction that ends the groups says what they are
            return min(kinds & {"async", "bulk"} or kinds, key=_RANK.__getitem__, default="async")
        return self.own_class or min(kinds, key=_RANK.__getitem__, default="other")

    @property
    def awaited(self) -> list[Producer]:
        """The producers of the site's class, in the order in which reports name them."""
        return sorted((producer for producer in self.producers if producer.kind == self.kind), key=self._rank)

    def report_order(self, sources: Mapping[int, tuple[str, int]]) -> list[Producer]:
        """Return ``awaited``; of a group of wgmma with several source lines, one with the line of the wait is first.

        Compilers give the instructions of one product the lines of work around them. ``sources`` are the lines by
        offset.
        """
        awaited = self.awaited
        if self.kind != "wgmma" or self.offset not in sources:
            return awaited
        first_producer, line = awaited[0], sources[self.offset]
        group = [producer for producer in awaited if _are_of_one_group(producer, first_producer)]
        of_line = [producer for producer in group if sources.get(producer.offset) == line]
        return [*of_line, *(producer for producer in awaited if producer not in of_line)]

    def _rank(self, producer: Producer) -> tuple[int, ...]:
        """Return the sort key of a producer in reports.

        The innermost loop is first, since instructions before it are awaited once. The last wgmma of a group is before
        the others, since it completes the group. The end of a group of copies is last, as it copies nothing.
        """
        ends_group = self.own_class == "async" and not producer.is_read
        if self.own_class == "wgmma":
            is_awaited_before = not producer.is_newest
            return is_awaited_before, -producer.depth, producer.from_previous, producer.is_read, -producer.index
        return ends_group, -producer.depth, not producer.is_read, producer.from_previous, -producer.index

    @property
    def is_of_one_iteration(self) -> bool:
        """True if warps wait in a loop, and only for instructions of the same iteration."""
        places = {(producer.depth, producer.from_previous) for producer in self.awaited}
        return self.depth > 0 and places == {(self.depth, False)}


def _are_of_one_group(producer: Producer, reference: Producer) -> bool:
    return (producer.is_newest, producer.depth, producer.from_previous) == (
        reference.is_newest,
        reference.depth,
        reference.from_previous,
    )


def wait_sites(target: GraftTarget, graph: FlowGraph | None = None) -> list[WaitSite]:
    """Return the wait sites that the entry of a kernel reaches, in order of its code.

    Raises UnsupportedKernelError for a branch through a register without a table of targets.
    """
    graph = graph or FlowGraph.from_target(target)
    search = ProducerSearch(target, graph)
    sites = []
    for number in sorted(graph.dominators):
        loops = graph.loops_around(number)
        for index in graph.blocks[number]:
            word = target.words[index]
            wait_class = own_wait(word)
            barriers = tuple(barrier for barrier in range(BARRIER_COUNT) if awaited_barriers(word) >> barrier & 1)
            if wait_class is None and not barriers:
                continue
            producers = search.scoreboard_producers(index, barriers)
            for producer in search.group_producers(index):  # first those of the newest iteration
                producers.setdefault(producer.index, producer)
            ordered_producers = tuple(producers[producer_index] for producer_index in sorted(producers))
            if (
                wait_class or ordered_producers
            ):  # code without optimization also waits for scoreboards that nothing sets
                sites.append(WaitSite(index, barriers, wait_class, ordered_producers, loops))
    return sorted(sites, key=lambda site: site.index)


def movable_sites(target: GraftTarget, sites: Iterable[WaitSite]) -> list[WaitSite]:
    """Return the sites whose instruction may be replaced with a branch, those first that usually wait longest."""
    fixed = fixed_offsets(target)
    movable = [site for site in sites if site.offset not in fixed and _is_movable(target, site)]
    return sorted(movable, key=lambda site: (-_expected_cycles(site), site.index))


def hidden_waits(
    target: GraftTarget, sites: Iterable[WaitSite], measurable: Iterable[WaitSite]
) -> dict[str, list[int]]:
    """Return the byte offsets of instructions that may hold warps for long and are not measurable, by name: barriers
    and the like among ``sites``, and wgmma, which waits for the product before it without a scoreboard.
    """
    measurable_indices = {site.index for site in measurable}
    held_indices = {
        site.index for site in sites if site.own_class not in (None, "sleep") and site.index not in measurable_indices
    }
    products = {index for index, word in enumerate(target.words) if word.operation in WARPGROUP_PRODUCTS}
    offsets_by_name: dict[str, list[int]] = {}
    for index in sorted(held_indices | products):
        offsets_by_name.setdefault(operation_name(target.words[index], target.arch), []).append(index * WORD_BYTES)
    return offsets_by_name


def choose_group(ranked: Sequence[WaitSite], group: int, size: int = MAX_SITES) -> list[WaitSite]:
    """Return the sites of group number ``group``, from 0 on, in order of the code: at most ``size``."""
    remaining = list(ranked)
    group_sites: list[WaitSite] = []
    for _ in range(group + 1):
        group_sites = []
        for site in remaining:
            if len(group_sites) < size and not any(_disturb(site, neighbor) for neighbor in group_sites):
                group_sites.append(site)
        remaining = [site for site in remaining if site not in group_sites]
    return sorted(group_sites, key=lambda site: site.index)


def _disturb(site: WaitSite, neighbor: WaitSite) -> bool:
    """Return whether measuring one of two sites shortens the waits at the other."""
    return _is_in_shadow(site, neighbor) or _is_in_shadow(neighbor, site)


def _is_in_shadow(site: WaitSite, neighbor: WaitSite) -> bool:
    """Return whether ``site`` is between ``neighbor`` and a load that ``neighbor`` waits for, perhaps one of an earlier
    iteration.
    """
    return any(
        _is_behind(site, neighbor, producer.index)
        if producer.from_previous
        else producer.index < site.index < neighbor.index
        for producer in neighbor.producers
        if producer.kind == neighbor.kind and producer.is_newest
    )


def _is_behind(site: WaitSite, neighbor: WaitSite, producer: int) -> bool:
    """Return whether a site is on the way from a load over the back edge of the loop to ``neighbor``."""
    same_loop = bool(neighbor.loops) and neighbor.loops[0] in site.loops
    return same_loop and not neighbor.index < site.index < producer


def _expected_cycles(site: WaitSite) -> int:
    iterations: int = _ITERATIONS ** min(site.depth, _MAX_DEPTH)
    return _EXPECTED_CYCLES[site.kind] * iterations


def _is_movable(target: GraftTarget, site: WaitSite) -> bool:
    word = target.words[site.index]
    if word.never_runs or word.operation in _ADDRESS_OF_CODE:
        return False
    return word.operation not in CONTROL_FLOW or (word.operation in MOVABLE_OPERATIONS and site.own_class is None)


def fixed_offsets(target: GraftTarget) -> set[int]:
    """Return the byte offsets of instructions that the file names, by lists or relocations, and 0."""
    offset_lists = (listed_offsets(attribute) for attribute in target.attributes if attribute.number in _OFFSET_LISTS)
    fixed = {0, *(offset for offsets in offset_lists for offset in offsets)}
    for section in target.cubin.relocation_sections():
        if section.info == target.code.number:
            relocations = target.cubin.relocations(section)
            fixed.update(relocation.offset // WORD_BYTES * WORD_BYTES for relocation in relocations)
    return fixed

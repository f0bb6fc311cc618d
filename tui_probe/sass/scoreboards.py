"""Wait sites of SASS: where warps wait, for which earlier instructions, and which sites one launch measures.

An instruction waits for the scoreboards of its mask, no matter what its guard says. The producers of a scoreboard are
found by walking back over the blocks, on every way until an instruction that waited for the same scoreboard.
``DEPBAR`` and ``WARPGROUP.DEPBAR`` count groups, the oldest first: those that may stay pending are passed over.

A producer that sets no scoreboard itself is named where its queue ends in order, the last of the queue sets the
scoreboard, and the waiting instruction reads its register.

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
from tui_probe.sass.wait_classes import (
    OPERANDS,
    WAIT_CLASSES,
    WARPGROUP_PRODUCTS,
    awaited_barriers,
    completes_groups,
    group_class,
    group_classes,
    group_end,
    in_order_queue,
    own_wait,
    pending_groups,
    produced_class,
    released_class,
    waits_for_all,
)
from tui_probe.sass.words import CONTROL_FLOW, NO_BARRIER, RZ, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_BARRIERS: Final = 6
_RANK: Final = {key: rank for rank, key in enumerate(WAIT_CLASSES)}
_WIDTH: Final = 73, 3
_QUAD, _PAIR = 6, 5
_LDSM, _MUFU = 0x03B, 0x108
_MATRICES: Final = 72, 2
"""Bits of the number of matrices of LDSM: 1, 2 or 4, a register each."""
_STATES: Final = 1 << 8
"""More than the groups that may be pending."""
_COMPLETE: Final = _STATES * _STATES
"""Added where all earlier groups are complete."""
_REGISTER_FORM: Final = 1


@dataclass(frozen=True, slots=True)
class Producer:
    """An instruction that a warp waits for. ``is_read``: the waiting instruction names a register that it writes,
    or it is one of an awaited group, other than the last.

    ``from_previous``: it is reached over the back edge of a loop only, so it is one of an earlier iteration.
    ``depth`` is the number of loops that it and the waiting instruction are in. ``is_newest``: no later group is
    awaited.
    """

    index: int
    kind: str
    is_read: bool
    from_previous: bool
    depth: int
    is_newest: bool = True

    @property
    def at(self) -> int:
        """Byte offset in the kernel's code."""
        return self.index * WORD_BYTES


@dataclass(frozen=True, slots=True)
class WaitSite:
    """An instruction at which warps wait. ``own`` is the class of what it waits for without a mask."""

    index: int
    barriers: tuple[int, ...]
    own: str | None
    producers: tuple[Producer, ...]
    """Ordered as in the code."""
    loops: tuple[int, ...]
    """Loops around it by the block of their header, the innermost first."""

    @property
    def at(self) -> int:
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
        if self.own == "async":  # the instruction that ends the groups says what they are
            return min(kinds & {"async", "bulk"} or kinds, key=_RANK.__getitem__, default="async")
        return self.own or min(kinds, key=_RANK.__getitem__, default="other")

    @property
    def awaited(self) -> list[Producer]:
        """The producers of the site's class, that to name first at the start."""
        return sorted((producer for producer in self.producers if producer.kind == self.kind), key=self._rank)

    def named(self, sources: Mapping[int, tuple[str, int]]) -> list[Producer]:
        """Return ``awaited``; of a group of wgmma with several source lines, one with the line of the wait is first.

        Compilers give the instructions of one product the lines of work around them. ``sources`` are the lines by
        offset.
        """
        awaited = self.awaited
        if self.kind != "wgmma" or self.at not in sources:
            return awaited
        first, line = awaited[0], sources[self.at]
        place = first.is_newest, first.depth, first.from_previous
        group = [other for other in awaited if (other.is_newest, other.depth, other.from_previous) == place]
        of_line = [producer for producer in group if sources.get(producer.at) == line]
        return [*of_line, *(producer for producer in awaited if producer not in of_line)]

    def _rank(self, producer: Producer) -> tuple[int, ...]:
        """The innermost loop is first, since instructions before it are awaited once. The last wgmma of a group is
        before the others, since it completes the group. The end of a group of copies is last, as it copies nothing.
        """
        ends_group = self.own == "async" and not producer.is_read
        if self.own == "wgmma":
            is_awaited_before = not producer.is_newest
            return is_awaited_before, -producer.depth, producer.from_previous, producer.is_read, -producer.index
        return ends_group, -producer.depth, not producer.is_read, producer.from_previous, -producer.index

    @property
    def is_of_one_iteration(self) -> bool:
        """True if warps wait in a loop, and only for instructions of the same iteration."""
        places = {(producer.depth, producer.from_previous) for producer in self.awaited}
        return self.depth > 0 and places == {(self.depth, False)}


def wait_sites(target: GraftTarget, graph: FlowGraph | None = None) -> list[WaitSite]:
    """Return the wait sites that the entry of a kernel reaches, in order of its code.

    Raises UnsupportedKernelError for a branch through a register without a table of targets.
    """
    graph = graph or FlowGraph.of(target)
    search = _ProducerSearch(target, graph)
    sites = []
    for number in sorted(graph.dominators):
        loops = graph.loops_around(number)
        for index in graph.blocks[number]:
            word = target.words[index]
            wait_class = own_wait(word)
            barriers = tuple(barrier for barrier in range(_BARRIERS) if awaited_barriers(word) >> barrier & 1)
            if wait_class is None and not barriers:
                continue
            producers = search.of_masks(index, barriers)
            for producer in search.of_groups(index):  # first those of the newest iteration
                producers.setdefault(producer.index, producer)
            ordered = tuple(producers[at] for at in sorted(producers))
            if wait_class or ordered:  # code without optimization also waits for scoreboards that nothing sets
                sites.append(WaitSite(index, barriers, wait_class, ordered, loops))
    return sorted(sites, key=lambda site: site.index)


def pending_scoreboards(target: GraftTarget, graph: FlowGraph) -> list[int]:
    """Return, per instruction, the mask of scoreboards that may be set and not waited for when it has been issued."""
    behind = [0] * len(target.words)
    entering = [0] * len(graph.blocks)
    pending = list(range(len(graph.blocks)))
    while pending:
        block = pending.pop()
        mask = entering[block]
        for index in graph.blocks[block]:
            word = target.words[index]
            mask &= ~word.wait_mask
            mask |= sum(1 << barrier for barrier in {word.write_barrier, word.read_barrier} if barrier < _BARRIERS)
            behind[index] = mask
        for other in graph.continuations[block]:
            if mask & ~entering[other]:
                entering[other] |= mask
                pending.append(other)
    return behind


@dataclass(frozen=True)
class _ProducerSearch:
    target: GraftTarget
    graph: FlowGraph

    def of_masks(self, index: int, barriers: Iterable[int]) -> dict[int, Producer]:
        """Return what sets scoreboards before instruction ``index`` waits for them. A producer may set two of them:
        its result comes after it has read its operands.
        """
        producers: dict[int, Producer] = {}
        for barrier in barriers:
            for producer in self.of_mask(index, barrier):
                if producers.get(producer.index, producer).kind in (OPERANDS, producer.kind):
                    producers[producer.index] = producer
        return producers

    def of_mask(self, index: int, barrier: int) -> Iterator[Producer]:
        """Yield what sets a scoreboard before instruction ``index`` waits for it."""
        words, arch = self.target.words, self.target.arch

        def until_waited(at: int, has_waited: int) -> int | None:
            return None if has_waited else int(waits_for_all(words[at], barrier))

        passed = self._walk_back(index, until_waited)
        queues = {in_order_queue(words[at], arch) for at, _, _ in passed if words[at].write_barrier == barrier}
        for at, _, is_previous in passed:
            word = words[at]
            if word.write_barrier == barrier:
                is_read = _reads_result(words[index], word)
                yield Producer(at, produced_class(word, arch), is_read, is_previous, self._depth(index, at))
            elif word.read_barrier == barrier:
                yield Producer(at, released_class(word, arch), False, is_previous, self._depth(index, at))
            elif self._is_of_queue(word, queues) and _reads_result(words[index], word):
                yield Producer(at, produced_class(word, arch), True, is_previous, self._depth(index, at))

    def _depth(self, index: int, producer: int) -> int:
        around, own = (self.graph.loops_around(self.graph.block_at(at)) for at in (index, producer))
        return len({*around} & {*own})

    def _is_of_queue(self, word: Word, queues: Container[str | None]) -> bool:
        queue = in_order_queue(word, self.target.arch)
        return queue is not None and queue in queues and word.write_barrier == NO_BARRIER

    def of_groups(self, index: int) -> Iterator[Producer]:
        """Yield the instructions of the newest group that a ``DEPBAR`` or ``WARPGROUP.DEPBAR`` waits for.

        Products are computed one after the other: those of the group before it are awaited, too, unless an earlier
        instruction waited for them. A ``DEPBAR`` may also wait for another instruction that sets its scoreboard, such
        as a ``MEMBAR``: a group of its own.
        """
        words, arch = self.target.words, self.target.arch
        ends_group = group_end(words[index])
        if ends_group is None:
            return
        pending, kinds = pending_groups(words[index]), group_classes(words[index])

        groups = pending + (2 if kinds == {"wgmma"} else 1)

        def until_previous_group(at: int, state: int) -> int | None:
            if state >= _COMPLETE:
                return None
            most, ended = divmod(state, _STATES)  # groups that are not yet awaited here, counted down from ``groups``
            if groups > pending + 1 and own_wait(words[at]) == "wgmma":
                most = max(most, groups - max(pending + 1, ended + pending_groups(words[at])))
            if ends_group(words[at]):
                ended += 1
            if ended > groups - most:
                return None
            return most * _STATES + ended + _COMPLETE * completes_groups(words[index], words[at])

        passed = [
            (at, group_class(words[at], arch), ends_group(words[at]), state % _STATES, is_previous)
            for at, state, is_previous in self._walk_back(index, until_previous_group)
            if state % _STATES > pending
        ]
        has_copies = any(is_end and kind in kinds for _, kind, is_end, _, _ in passed)
        for at, kind, is_end, ended, is_previous in passed:
            if is_end or (has_copies and kind in kinds and own_wait(words[at]) is None):
                yield Producer(at, kind, not is_end, is_previous, self._depth(index, at), ended == pending + 1)

    def _walk_back(self, index: int, rule: Callable[[int, int], int | None]) -> list[tuple[int, int, bool]]:
        """Walk back from instruction ``index`` on all ways, with a state that is 0 first.

        ``rule`` gets an instruction and the state behind it; it returns the state before it, or None to stop without
        it. Returns each instruction with the state before it, and whether all ways to it lead over a back edge.
        """
        passed: dict[tuple[int, int], bool] = {}
        seen: set[tuple[int, int, int, bool]] = set()
        ways = [(self.graph.block_at(index), index, 0, False)]
        ways_over_back_edges: list[tuple[int, int, int, bool]] = []
        while ways or ways_over_back_edges:
            is_previous = not ways
            way = (ways or ways_over_back_edges).pop()
            if way in seen:
                continue
            seen.add(way)
            block, end, state, in_called = way
            for at in range(end - 1, self.graph.blocks[block].start - 1, -1):
                following = rule(at, state)
                if following is None:
                    break
                state = following
                passed.setdefault((at, state), is_previous)
            else:
                for before, is_in_called in self._blocks_before(block, in_called=in_called):
                    is_back_edge = is_previous or self.graph.dominates(block, before)
                    following_way = before, self.graph.blocks[before].stop, state, is_in_called
                    (ways_over_back_edges if is_back_edge else ways).append(following_way)
        return [(at, state, is_previous) for (at, state), is_previous in passed.items()]

    def _blocks_before(self, block: int, *, in_called: bool) -> Iterator[tuple[int, bool]]:
        """Yield the blocks before one, and whether they are of a function that has returned: the way through it ends at
        its first instruction, since another one leads around the call.
        """
        for before in self.graph.predecessors[block]:
            if before in self.graph.dominators and not (in_called and self.graph.calls.get(before) == block):
                yield before, in_called
        for before in self.graph.returns.get(block, ()):
            if before in self.graph.dominators:
                yield before, True


def _reads_result(reader: Word, producer: Word) -> bool:
    """Return whether an instruction names a register that a producer writes: the first of those that it reads."""
    if producer.rd == RZ:
        return False
    width = _written_registers(producer)
    fields = [reader.ra, reader.field(64, 8), *([reader.rb] if reader.form == _REGISTER_FORM else [])]
    return any(producer.rd <= number < producer.rd + width for number in fields if number != RZ)


def _written_registers(producer: Word) -> int:
    """Return the number of registers that a producer writes."""
    if producer.operation == _LDSM:
        return int(1 << producer.field(*_MATRICES))
    if producer.operation == _MUFU:  # the function is in the bits that are the width of others
        return 1
    return {_PAIR: 2, _QUAD: 4}.get(producer.field(*_WIDTH), 1)


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


def hidden_waits(
    target: GraftTarget, sites: Iterable[WaitSite], measurable: Iterable[WaitSite]
) -> dict[str, list[int]]:
    """Return the offsets of instructions that may hold warps for long and are not measurable, by name: barriers and the
    like among ``sites``, and wgmma, which waits for the product before it without a scoreboard.
    """
    known = {site.index for site in measurable}
    held = {site.index for site in sites if site.own not in (None, "sleep") and site.index not in known}
    products = {index for index, word in enumerate(target.words) if word.operation in WARPGROUP_PRODUCTS}
    hidden: dict[str, list[int]] = {}
    for index in sorted(held | products):
        hidden.setdefault(operation_name(target.words[index], target.arch), []).append(index * WORD_BYTES)
    return hidden


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
        if producer.kind == other.kind and producer.is_newest
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
    listed = (listed_offsets(attribute) for attribute in target.attributes if attribute.number in _LISTS)
    fixed = {0, *(offset for offsets in listed for offset in offsets)}
    for section in target.cubin.relocation_sections():
        if section.info == target.code.number:
            relocations = target.cubin.relocations(section)
            fixed.update(relocation.offset // WORD_BYTES * WORD_BYTES for relocation in relocations)
    return fixed

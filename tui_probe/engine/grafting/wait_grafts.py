"""Graft a probe of waits into a kernel: clocks at its wait sites, sums in uniform registers, added up at its exits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.grafting.instruction_code import InstructionCode, assemble_code
from tui_probe.engine.grafting.site_kernel_text import WaitSums
from tui_probe.engine.grafting.site_values import Mark
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import LONGEST_HELPER, WAIT_HELPER, Save
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.reasons import because
from tui_probe.sass import lane_registers
from tui_probe.sass.accesses import StackAccess, stack_accesses
from tui_probe.sass.address_origins import AddressOrigins
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.graft import Grafted, Splice, apply_splices
from tui_probe.sass.graft_check import refuse_changes
from tui_probe.sass.inline_code import FreeRegisters, MarkValue
from tui_probe.sass.register_room import RegisterRoom
from tui_probe.sass.scoreboards import least_used_barriers, pending_scoreboards, with_read_barriers
from tui_probe.sass.snippets import UniformAssignment, assign_uniform_registers, with_initial_wait
from tui_probe.sass.trampolines import opening_words
from tui_probe.sass.uniform_registers import FIRST_FREE_UNIFORM, UNIFORM_REGISTERS, used_uniform_registers
from tui_probe.sass.variables import calls_outside
from tui_probe.sass.wait_probe import (
    FIRST_ARCHITECTURE,
    SiteResources,
    WaitRegisters,
    cleared_sums,
    needs_scoreboard,
    wait_splice,
)
from tui_probe.sass.wait_sites import MAX_SITES, choose_group, hidden_waits, movable_sites, wait_sites
from tui_probe.sass.words import ALL_BARRIERS, BARRIER_COUNT, MAX_REGISTERS, RESERVED, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.engine.grafting.snippet_store import SnippetStore
    from tui_probe.probe_model.probe import Probe, ProbePoint
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.wait_sites import WaitSite
    from tui_probe.sass.words import Word

_COUNT: Final = "1"
_MANY_UNIFORM: Final = 40
"""Free uniform registers from which on the first group has all its sites: ptxas gives the exits' code a dozen."""
_MAX_FOLLOWED: Final = 16
"""Producers of a wait whose addresses are followed back."""
_CLOCKS: Final = 2
"""Ordinary registers that hold clocks."""


@dataclass(frozen=True, slots=True)
class ProbedWait:
    """A wait site with the points of the probe that are at it. ``spills`` are the accesses of the stack in its basic
    block, which are executed as often; of several sites there the first has them. ``parameters`` are the numbers of
    the kernel parameters that the awaited accesses get their addresses from.
    """

    site: WaitSite
    points: tuple[str, ...]
    spills: tuple[StackAccess, ...] = ()
    parameters: tuple[int, ...] = ()

    @property
    def at(self) -> int:
        """Byte offset in the kernel's code."""
        return self.site.at


@dataclass(frozen=True, slots=True)
class ProbedWaits:
    """The wait sites that are measured; ``offsets`` of all that could be, those first that usually wait longest.
    ``hidden`` are the offsets of instructions that may hold warps and cannot be measured, by name.
    """

    sites: list[ProbedWait]
    offsets: tuple[int, ...]
    hidden: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of sites that could be measured."""
        return len(self.offsets)


def graft_waits(
    target: GraftTarget, probe: Probe, snippets: SnippetStore, *, sampled: bool
) -> tuple[Grafted, ProbedWaits]:
    """Put a probe of waits into a kernel. Raises UnsupportedKernelError and ToolchainError."""
    if target.arch < FIRST_ARCHITECTURE:
        raise UnsupportedKernelError(because("waits-architecture", probe=probe.name, gpu=f"sm_{target.arch}"))
    target.refuse_functions()
    if function := calls_outside(target):
        raise UnsupportedKernelError(because("graft-calls", function=function))
    (point,) = (point for point in probe.points if any(position.is_wait for position in point.positions))
    graph = FlowGraph.of(target)
    resources = _SiteResourceChoice.of(target, graph)
    sites = wait_sites(target, graph)
    ranked = resources.usable(probe, movable_sites(target, sites))
    grafting = _WaitCode(target, probe, snippets, point, ranked, _free_uniform(target), sampled)
    groups = [int(position.modifiers[0]) for position in point.positions if position.is_wait]
    fitted = grafting.fitted(groups, _SumRoom(MAX_SITES, MAX_SITES))
    if groups != [1] and len(fitted.sites) < MAX_SITES and len(grafting.free_uniform) < _MANY_UNIFORM:
        # A group of another size than the first one would leave sites between them.
        size = grafting.fitted([1], _SumRoom(MAX_SITES, MAX_SITES)).room.sites
        fitted = fitted if size == fitted.room.sites else grafting.fitted(groups, _SumRoom(size, MAX_SITES))
    spills, origins = _spills_by_block(target, graph), AddressOrigins(target, graph)
    probed = [
        ProbedWait(site, (point.name,), spills.pop(graph.block_at(site.index), ()), _awaited_parameters(site, origins))
        for site in fitted.sites
    ]
    offsets = tuple(site.at for site in ranked)
    grafted = _graft(target, fitted.uniform, fitted.sites, fitted.with_longest, resources)
    return grafted, ProbedWaits(probed, offsets, hidden_waits(target, sites, ranked))


@dataclass(frozen=True)
class _FittedWaits:
    """Sites of a group whose sums fit into the uniform registers, and those whose longest wait is kept."""

    room: _SumRoom
    sites: list[WaitSite]
    with_longest: set[int]
    uniform: _UniformChoice


@dataclass(frozen=True)
class _WaitCode:
    """The code of a probe of waits for sites of a kernel, ``ranked`` ones first."""

    target: GraftTarget
    probe: Probe
    snippets: SnippetStore
    point: ProbePoint
    ranked: Sequence[WaitSite]
    free_uniform: set[int]
    sampled: bool

    def fitted(self, groups: Sequence[int], room: _SumRoom) -> _FittedWaits:
        """Return as many sites of groups as have room. Raises UnsupportedKernelError."""
        keeps_longest = LONGEST_HELPER in _save_of(self.point).values
        while True:
            sites = [site for group in groups for site in choose_group(self.ranked, group - 1, room.sites)]
            room = _SumRoom(room.sites, min(room.longest, len(sites)) if keeps_longest else 0)
            by_rank = sorted(range(len(sites)), key=lambda number: self.ranked.index(sites[number]))
            with_longest = set(by_rank[: room.longest])
            waits = [
                _wait_sums(self.probe, self.point, number, longest=number in with_longest)
                for number in range(len(sites))
            ]
            code = assemble_code(self.target, self.probe, self.snippets, waits=waits, sampled=self.sampled)
            needed = 2 * len(sites) + room.longest
            uniform = _UniformChoice.of(code, self.free_uniform, needed)
            if uniform.room >= needed:
                return _FittedWaits(room, sites, with_longest, uniform)
            room = room.within(uniform.room, len(sites))


@dataclass(frozen=True)
class _SiteResourceChoice:
    """Registers for clocks and scoreboards at the sites of a kernel.

    ``room`` is None in a kernel that can have two more registers: its warps keep theirs, and it has less than most.
    """

    target: GraftTarget
    room: RegisterRoom | None
    pending: list[int]

    @classmethod
    def of(cls, target: GraftTarget, graph: FlowGraph) -> _SiteResourceChoice:
        grows = target.fewest_registers == target.registers and target.registers + _CLOCKS <= MAX_REGISTERS
        pending = pending_scoreboards(target.words, graph).behind if needs_scoreboard(target.arch) else []
        return cls(target, None if grows else RegisterRoom(target, graph), pending)

    @property
    def registers(self) -> int:
        """Number of registers of the kernel with the code at its sites."""
        return self.target.registers + (_CLOCKS if self.room is None else 0)

    def usable(self, probe: Probe, sites: Sequence[WaitSite]) -> list[WaitSite]:
        """Return the sites that leave the code enough. Raises UnsupportedKernelError if registers leave none."""
        usable = [site for site in sites if self._has_registers(site) and self._has_scoreboard(site)]
        if sites and not usable and self.room is not None:
            left = max(len(self.room.free(site.index)) for site in sites)
            raise UnsupportedKernelError(because("waits-registers", probe=probe.name, needed=_CLOCKS, left=left))
        return usable

    def at(self, site: WaitSite) -> SiteResources:
        """Return the resources of the code at a usable site."""
        first = self.target.registers - RESERVED
        *_, before, after = (first, first + 1) if self.room is None else self.room.free(site.index)
        if not self.pending:
            return SiteResources(before, after)
        pending = self.pending[site.index]
        scoreboard = next(number for number in range(BARRIER_COUNT) if not pending >> number & 1)
        return SiteResources(before, after, scoreboard)

    def refuse_large(self, code: InstructionCode) -> None:
        """Raise UnsupportedKernelError if a warp has too few registers for the code of the entry or an exit."""
        if self.room is None or self.target.fewest_registers == self.target.registers:
            return
        needed = max(inline.registers for inline in code.all) + RESERVED
        left = min(self.target.registers, *(self.room.limit(at // WORD_BYTES) for at in self.target.exits()))
        if needed > left:
            raise UnsupportedKernelError(because("graft-registers", needed=needed, left=left))

    def _has_registers(self, site: WaitSite) -> bool:
        return self.room is None or len(self.room.free(site.index)) >= _CLOCKS

    def _has_scoreboard(self, site: WaitSite) -> bool:
        return not self.pending or self.pending[site.index] != ALL_BARRIERS


@dataclass(frozen=True)
class _UniformChoice:
    """The code of entry and exits, its uniform registers, and those that are left for sums and what is kept."""

    code: InstructionCode
    assigned: UniformAssignment
    left: list[int]

    @classmethod
    def of(cls, code: InstructionCode, free: set[int], needed: int) -> _UniformChoice:
        """Choose uniform registers for code and sums. Exit code uses ordinary ones where the kernel leaves too few
        uniform ones.
        """
        try:
            choice = cls._assigned(code, free)
        except UnsupportedKernelError:  # not even the code of exits has enough
            choice = None
        return choice if choice and choice.room >= needed else cls._assigned(code.with_few_uniform(), free)

    @classmethod
    def _assigned(cls, code: InstructionCode, free: set[int]) -> _UniformChoice:
        assigned = _assign_uniform(code, free)
        taken = {pair + half for pair in assigned.exits.values() for half in (0, 1)}
        return cls(code, assigned, sorted(free - taken, reverse=True))

    @property
    def room(self) -> int:
        """Number of registers for sums, counts and longest waits."""
        return len(self.left) - 1 - self.code.ptx.words

    @property
    def kept(self) -> list[int]:
        """Registers that keep values from the entry to the exits."""
        return self.left[: self.code.ptx.words]

    def registers(self, sites: int, with_longest: set[int]) -> WaitRegisters:
        """Return the registers of the code at sites."""
        return WaitRegisters.of(self.left[self.code.ptx.words :], sites, with_longest)


@dataclass(frozen=True)
class _SumRoom:
    """Numbers of sites of a group, and of those whose longest wait is kept."""

    sites: int
    longest: int

    def within(self, registers: int, chosen: int) -> _SumRoom:
        """Return what fits that many registers, with ``chosen`` sites if possible. Raises UnsupportedKernelError."""
        if registers >= 2 * chosen:
            return _SumRoom(self.sites, registers - 2 * chosen)
        if registers < 2:
            raise UnsupportedKernelError(because("graft-uniform"))
        return _SumRoom(registers // 2, 0)


def _free_uniform(target: GraftTarget) -> set[int]:
    used = used_uniform_registers(target.all_words(), target.arch)
    return set(range(FIRST_FREE_UNIFORM, UNIFORM_REGISTERS)) - used


def _assign_uniform(code: InstructionCode, free: set[int]) -> UniformAssignment:
    """Return uniform registers for the entry code, where none holds anything yet, and of ``free`` ones for exits."""
    entry, leaving = (sorted(inline.uniform_pairs()) if inline else [] for inline in (code.entry, code.exit))
    return assign_uniform_registers(entry, leaving, set(range(UNIFORM_REGISTERS)) - free, 0, None)


def _wait_sums(probe: Probe, point: ProbePoint, number: int, *, longest: bool) -> WaitSums:
    save = _save_of(point)
    values = (WAIT_HELPER, _COUNT, *((LONGEST_HELPER,) if longest else ()))
    marks = {value: _mark(number, place) for place, value in enumerate(values)}
    return WaitSums(probe.map_named(save.map), save.values, marks, Instruction("wait", (), (), MADE_UP))


def _save_of(point: ProbePoint) -> Save:
    """Return the one statement of a point at waits."""
    (save,) = (
        statement for statement in (point.after.statements if point.after else ()) if isinstance(statement, Save)
    )
    return save


def _spills_by_block(target: GraftTarget, graph: FlowGraph) -> dict[int, tuple[StackAccess, ...]]:
    blocks: dict[int, tuple[StackAccess, ...]] = {}
    for access in stack_accesses(target, graph):
        block = graph.block_at(access.index)
        blocks[block] = (*blocks.get(block, ()), access)
    return blocks


def _awaited_parameters(site: WaitSite, origins: AddressOrigins) -> tuple[int, ...]:
    awaited = (producer.index for producer in site.awaited[:_MAX_FOLLOWED])
    return tuple(sorted({number for index in awaited for number in origins.of_access(index)}))


def _mark(site: int, place: int) -> int:
    """Return the number of the mark of a site's sum, number or longest wait."""
    return Mark.FIRST_NUMBER + 3 * site + place


def _graft(
    target: GraftTarget,
    uniform: _UniformChoice,
    sites: Sequence[WaitSite],
    with_longest: set[int],
    resources: _SiteResourceChoice,
) -> Grafted:
    """Put the code at the sites, at the entry and at the exits, which have the registers of the kernel."""
    code, arch = uniform.code, target.arch
    resources.refuse_large(code)
    registers = uniform.registers(len(sites), with_longest)
    mark_values = {Mark.FIRST_KEPT + index: MarkValue(uniform=number) for index, number in enumerate(uniform.kept)}
    free = _free_registers(target, code, uniform.assigned.exits, resources)
    opening = (
        opening_words(code.entry, replace(free, uniform=uniform.assigned.entry), mark_values) if code.entry else []
    )
    splices = [Splice(0, (*opening, *cleared_sums(registers, arch)))]
    for number, site in enumerate(sites):
        word, own = target.words[site.index], resources.at(site)
        splices.append(wait_splice(site.at, word, number, registers, own, arch, waits_itself=site.own is not None))
    leaving = _leaving_words(code, free, mark_values, registers)
    splices += [Splice(at, leaving) for at in target.exits()]
    flags = [flag for inline in code.all for flag in inline.flags]
    rewritten = with_read_barriers(target.words)
    grafted = apply_splices(target, splices, len(code.ptx.parameters()), free.registers, rewritten, flags)
    pairs = {number & ~1 for number in {*registers.uniform, *uniform.kept}}
    refuse_changes(target, grafted, uniform.assigned.pairs | pairs)
    return grafted


def _leaving_words(
    code: InstructionCode, free: FreeRegisters, values: dict[int, MarkValue], registers: WaitRegisters
) -> tuple[Word, ...]:
    """Return the code of the exits. Behind it the sums are 0 again, for lanes of the warp that leave later."""
    assert code.exit is not None
    sums = {
        _mark(number, place): MarkValue(uniform=register)
        for number, site in enumerate(registers.sites)
        for place, register in enumerate(site.registers)
    }
    return (*with_initial_wait(code.exit.placed(free, values | sums)), *cleared_sums(registers, free.arch))


def _free_registers(
    target: GraftTarget, code: InstructionCode, uniform: dict[int, int], resources: _SiteResourceChoice
) -> FreeRegisters:
    """Return the registers of the entry and exit code, which has those of the kernel, and its uniform predicates."""
    words, barriers = list(target.all_words()), _convergence_barriers(code)
    convergence, *others = lane_registers.free_barriers(words, 1 + len(barriers))
    end = target.registers - RESERVED + _CLOCKS
    return FreeRegisters(
        arch=target.arch,
        base=target.base,
        parameters_at=target.base + target.first_added,
        first=0,
        scratch=end,
        uniform=uniform,
        predicates={},
        barriers=least_used_barriers(words),
        predicate_barriers=lane_registers.late_predicates(words),
        convergence=convergence,
        convergence_barriers=dict(zip(barriers, others, strict=True)),
        registers=max(resources.registers, *(inline.registers + RESERVED for inline in code.all)),
    )


def _convergence_barriers(code: InstructionCode) -> list[int]:
    return sorted({number for inline in code.all for number in inline.convergence_barriers()})

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
from tui_probe.sass.graft import GraftedCubin, Splice, apply_splices
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
_AMPLE_UNIFORM: Final = 40
"""Minimum number of free uniform registers with which a group always has all its sites: ptxas gives the exits' code a
dozen.
"""
_MAX_FOLLOWED: Final = 16
"""Producers of a wait whose addresses are followed back."""
_CLOCKS: Final = 2
"""Ordinary registers that hold clocks."""


@dataclass(frozen=True, slots=True)
class ProbedWait:
    """A wait site with the points of the probe that are at it.

    ``spills`` are the accesses of the stack in its basic block, which are executed as often; of several sites there the
    first has them. ``parameters`` are the numbers of the kernel parameters that the awaited accesses get their
    addresses from.
    """

    site: WaitSite
    points: tuple[str, ...]
    spills: tuple[StackAccess, ...] = ()
    parameters: tuple[int, ...] = ()

    @property
    def offset(self) -> int:
        """Byte offset in the kernel's code."""
        return self.site.offset


@dataclass(frozen=True, slots=True)
class ProbedWaits:
    """The measured wait sites of a kernel.

    ``measurable_offsets`` are the offsets of all sites that could be measured, the longest usual waits first.
    ``hidden_offsets`` are those of instructions that may hold warps and cannot be measured, by name.
    """

    sites: list[ProbedWait]
    measurable_offsets: tuple[int, ...]
    hidden_offsets: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of sites that could be measured."""
        return len(self.measurable_offsets)


def graft_waits(
    target: GraftTarget, probe: Probe, snippets: SnippetStore, *, samples_blocks: bool
) -> tuple[GraftedCubin, ProbedWaits]:
    """Put a probe of waits into a kernel. Raises UnsupportedKernelError and ToolchainError."""
    if target.arch < FIRST_ARCHITECTURE:
        raise UnsupportedKernelError(because("waits-architecture", probe=probe.name, gpu=f"sm_{target.arch}"))
    target.refuse_functions()
    if function := calls_outside(target):
        raise UnsupportedKernelError(because("graft-calls", function=function))
    (point,) = (point for point in probe.points if any(position.is_wait for position in point.positions))
    graph = FlowGraph.from_target(target)
    resources = _SiteResourceChoice.from_target(target, graph)
    sites = wait_sites(target, graph)
    ranked = resources.select_usable(probe, movable_sites(target, sites))
    wait_code = _WaitCode(target, probe, snippets, point, ranked, _free_uniform(target), samples_blocks)
    groups = [int(position.modifiers[0]) for position in point.positions if position.is_wait]
    fitted_waits = wait_code.fit_sites(groups, _SumRoom(MAX_SITES, MAX_SITES))
    if groups != [1] and len(fitted_waits.sites) < MAX_SITES and len(wait_code.free_uniform) < _AMPLE_UNIFORM:
        # A group of another size than the first one would leave sites between them.
        size = wait_code.fit_sites([1], _SumRoom(MAX_SITES, MAX_SITES)).room.sites
        fitted_waits = (
            fitted_waits if size == fitted_waits.room.sites else wait_code.fit_sites(groups, _SumRoom(size, MAX_SITES))
        )
    spills, origins = _spills_by_block(target, graph), AddressOrigins(target, graph)
    probed_waits = [
        ProbedWait(site, (point.name,), spills.pop(graph.block_at(site.index), ()), _awaited_parameters(site, origins))
        for site in fitted_waits.sites
    ]
    offsets = tuple(site.offset for site in ranked)
    grafted = _graft(target, fitted_waits.uniform, fitted_waits.sites, fitted_waits.longest_sites, resources)
    return grafted, ProbedWaits(probed_waits, offsets, hidden_waits(target, sites, ranked))


@dataclass(frozen=True)
class _FittedWaits:
    """Sites of a group whose sums fit into the uniform registers, and those whose longest wait is kept."""

    room: _SumRoom
    sites: list[WaitSite]
    longest_sites: set[int]
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
    samples_blocks: bool

    def fit_sites(self, groups: Sequence[int], room: _SumRoom) -> _FittedWaits:
        """Return as many sites of groups as have room. Raises UnsupportedKernelError."""
        keeps_longest = LONGEST_HELPER in _save_of(self.point).values
        while True:
            sites = [site for group in groups for site in choose_group(self.ranked, group - 1, room.sites)]
            room = _SumRoom(room.sites, min(room.longest_waits, len(sites)) if keeps_longest else 0)
            by_rank = sorted(range(len(sites)), key=lambda number: self.ranked.index(sites[number]))
            with_longest = set(by_rank[: room.longest_waits])
            waits = [
                _wait_sums(self.probe, self.point, number, keeps_longest=number in with_longest)
                for number in range(len(sites))
            ]
            code = assemble_code(
                self.target, self.probe, self.snippets, waits=waits, samples_blocks=self.samples_blocks
            )
            needed_registers = 2 * len(sites) + room.longest_waits
            uniform = _UniformChoice.choose(code, self.free_uniform, needed_registers)
            if uniform.room >= needed_registers:
                return _FittedWaits(room, sites, with_longest, uniform)
            room = room.shrink_to(uniform.room, len(sites))


@dataclass(frozen=True)
class _SiteResourceChoice:
    """Registers for clocks and scoreboards at the sites of a kernel.

    ``room`` is None in a kernel that can have two more registers: its warps keep theirs, and it has less than most.
    """

    target: GraftTarget
    room: RegisterRoom | None
    pending: list[int]

    @classmethod
    def from_target(cls, target: GraftTarget, graph: FlowGraph) -> _SiteResourceChoice:
        grows = target.min_registers == target.registers and target.registers + _CLOCKS <= MAX_REGISTERS
        pending = pending_scoreboards(target.words, graph).after_issue if needs_scoreboard(target.arch) else []
        return cls(target, None if grows else RegisterRoom(target, graph), pending)

    @property
    def registers(self) -> int:
        """Number of registers of the kernel with the code at its sites."""
        return self.target.registers + (_CLOCKS if self.room is None else 0)

    def select_usable(self, probe: Probe, sites: Sequence[WaitSite]) -> list[WaitSite]:
        """Return the sites that leave the code enough. Raises UnsupportedKernelError if registers leave none."""
        usable_sites = [site for site in sites if self._has_registers(site) and self._has_scoreboard(site)]
        if sites and not usable_sites and self.room is not None:
            free_count = max(len(self.room.free(site.index)) for site in sites)
            raise UnsupportedKernelError(because("waits-registers", probe=probe.name, needed=_CLOCKS, left=free_count))
        return usable_sites

    def resources_at(self, site: WaitSite) -> SiteResources:
        """Return the resources of the code at a usable site."""
        first_register = self.target.registers - RESERVED
        *_, start_clock, end_clock = (
            (first_register, first_register + 1) if self.room is None else self.room.free(site.index)
        )
        if not self.pending:
            return SiteResources(start_clock, end_clock)
        pending = self.pending[site.index]
        scoreboard = next(number for number in range(BARRIER_COUNT) if not pending >> number & 1)
        return SiteResources(start_clock, end_clock, scoreboard)

    def refuse_large(self, code: InstructionCode) -> None:
        """Raise UnsupportedKernelError if a warp has too few registers for the code of the entry or an exit."""
        if self.room is None or self.target.min_registers == self.target.registers:
            return
        needed_registers = max(inline.registers for inline in code.all_code) + RESERVED
        register_limit = min(
            self.target.registers, *(self.room.limit(offset // WORD_BYTES) for offset in self.target.exits())
        )
        if needed_registers > register_limit:
            raise UnsupportedKernelError(because("graft-registers", needed=needed_registers, left=register_limit))

    def _has_registers(self, site: WaitSite) -> bool:
        return self.room is None or len(self.room.free(site.index)) >= _CLOCKS

    def _has_scoreboard(self, site: WaitSite) -> bool:
        return not self.pending or self.pending[site.index] != ALL_BARRIERS


@dataclass(frozen=True)
class _UniformChoice:
    """The code of entry and exits, its uniform registers, and those that are left for sums and what is kept."""

    code: InstructionCode
    assignment: UniformAssignment
    free_registers: list[int]

    @classmethod
    def choose(cls, code: InstructionCode, free: set[int], needed_registers: int) -> _UniformChoice:
        """Choose uniform registers for code and sums. Exit code uses ordinary ones where the kernel leaves too few
        uniform ones.
        """
        try:
            choice = cls._assign(code, free)
        except UnsupportedKernelError:  # not even the code of exits has enough
            choice = None
        return choice if choice and choice.room >= needed_registers else cls._assign(code.with_few_uniform(), free)

    @classmethod
    def _assign(cls, code: InstructionCode, free: set[int]) -> _UniformChoice:
        assignment = _assign_uniform(code, free)
        exit_registers = {pair + half for pair in assignment.exits.values() for half in (0, 1)}
        return cls(code, assignment, sorted(free - exit_registers, reverse=True))

    @property
    def room(self) -> int:
        """Number of registers for sums, counts and longest waits."""
        return len(self.free_registers) - 1 - self.code.ptx.words

    @property
    def kept_registers(self) -> list[int]:
        """Registers that keep values from the entry to the exits."""
        return self.free_registers[: self.code.ptx.words]

    def registers(self, sites: int, longest_sites: set[int]) -> WaitRegisters:
        """Return the registers of the code at sites."""
        return WaitRegisters.assign(self.free_registers[self.code.ptx.words :], sites, longest_sites)


@dataclass(frozen=True)
class _SumRoom:
    """Numbers of sites of a group, and of those whose longest wait is kept."""

    sites: int
    longest_waits: int

    def shrink_to(self, registers: int, site_count: int) -> _SumRoom:
        """Return the room that these registers give, for ``site_count`` sites if possible.

        Raises UnsupportedKernelError if there is room for none.
        """
        if registers >= 2 * site_count:
            return _SumRoom(self.sites, registers - 2 * site_count)
        if registers < 2:
            raise UnsupportedKernelError(because("graft-uniform"))
        return _SumRoom(registers // 2, 0)


def _free_uniform(target: GraftTarget) -> set[int]:
    used_registers = used_uniform_registers(target.all_words(), target.arch)
    return set(range(FIRST_FREE_UNIFORM, UNIFORM_REGISTERS)) - used_registers


def _assign_uniform(code: InstructionCode, free: set[int]) -> UniformAssignment:
    """Return uniform registers for the entry code, where none holds anything yet, and of ``free`` ones for exits."""
    entry_pairs, exit_pairs = (sorted(inline.uniform_pairs()) if inline else [] for inline in (code.entry, code.exit))
    return assign_uniform_registers(entry_pairs, exit_pairs, set(range(UNIFORM_REGISTERS)) - free, 0, None)


def _wait_sums(probe: Probe, point: ProbePoint, number: int, *, keeps_longest: bool) -> WaitSums:
    save = _save_of(point)
    values = (WAIT_HELPER, _COUNT, *((LONGEST_HELPER,) if keeps_longest else ()))
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
    return tuple(sorted({number for index in awaited for number in origins.access_parameters(index)}))


def _mark(site: int, place: int) -> int:
    """Return the number of the mark of a site's sum, number or longest wait."""
    return Mark.FIRST_NUMBER + 3 * site + place


def _graft(
    target: GraftTarget,
    uniform: _UniformChoice,
    sites: Sequence[WaitSite],
    longest_sites: set[int],
    resources: _SiteResourceChoice,
) -> GraftedCubin:
    """Put the code at the sites, at the entry and at the exits, which have the registers of the kernel."""
    code, arch = uniform.code, target.arch
    resources.refuse_large(code)
    registers = uniform.registers(len(sites), longest_sites)
    mark_values = {
        Mark.FIRST_KEPT + index: MarkValue(uniform=number) for index, number in enumerate(uniform.kept_registers)
    }
    free = _free_registers(target, code, uniform.assignment.exits, resources)
    opening = (
        opening_words(code.entry, replace(free, uniform=uniform.assignment.entry), mark_values) if code.entry else []
    )
    splices = [Splice(0, (*opening, *cleared_sums(registers, arch)))]
    for number, site in enumerate(sites):
        word, site_resources = target.words[site.index], resources.resources_at(site)
        splices.append(
            wait_splice(
                site.offset, word, number, registers, site_resources, arch, waits_itself=site.own_class is not None
            )
        )
    exit_words = _exit_words(code, free, mark_values, registers)
    splices += [Splice(offset, exit_words) for offset in target.exits()]
    flags = [flag for inline in code.all_code for flag in inline.flags]
    rewritten = with_read_barriers(target.words)
    grafted = apply_splices(target, splices, len(code.ptx.parameters()), free.registers, rewritten, flags)
    pairs = {number & ~1 for number in {*registers.uniform, *uniform.kept_registers}}
    refuse_changes(target, grafted, uniform.assignment.pairs | pairs)
    return grafted


def _exit_words(
    code: InstructionCode, free: FreeRegisters, values: dict[int, MarkValue], registers: WaitRegisters
) -> tuple[Word, ...]:
    """Return the code of the exits. Behind it the sums are 0 again, for lanes of the warp that leave later."""
    assert code.exit is not None
    sums = {
        _mark(number, place): MarkValue(uniform=register)
        for number, site in enumerate(registers.sites)
        for place, register in enumerate(site.registers)
    }
    return (*with_initial_wait(code.exit.place(free, values | sums)), *cleared_sums(registers, free.arch))


def _free_registers(
    target: GraftTarget, code: InstructionCode, uniform: dict[int, int], resources: _SiteResourceChoice
) -> FreeRegisters:
    """Return the registers of the entry and exit code, which has those of the kernel, and its uniform predicates."""
    words, barriers = list(target.all_words()), _convergence_barriers(code)
    convergence, *snippet_barriers = lane_registers.free_barriers(words, 1 + len(barriers))
    end = target.registers - RESERVED + _CLOCKS
    return FreeRegisters(
        arch=target.arch,
        base=target.base,
        probe_base=target.base + target.added_offset,
        first_register=0,
        scratch=end,
        uniform=uniform,
        predicates={},
        barriers=least_used_barriers(words),
        predicate_barriers=lane_registers.late_predicates(words),
        convergence=convergence,
        convergence_barriers=dict(zip(barriers, snippet_barriers, strict=True)),
        registers=max(resources.registers, *(inline.registers + RESERVED for inline in code.all_code)),
    )


def _convergence_barriers(code: InstructionCode) -> list[int]:
    return sorted({number for inline in code.all_code for number in inline.convergence_barriers()})

"""Graft a probe of waits into a kernel: clocks at its wait sites, sums in uniform registers, added up at its exits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.grafting.instruction_grafts import InstructionCode, assemble_code
from tui_probe.engine.grafting.site_kernel_text import Mark, WaitSums
from tui_probe.engine.snippet import WAIT_HELPER
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import Save
from tui_probe.ptx.printer import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.reasons import because
from tui_probe.sass import lane_registers
from tui_probe.sass.graft import Grafted, Splice, apply_splices
from tui_probe.sass.graft_check import refuse_changes
from tui_probe.sass.inline_code import FreeRegisters, MarkValue
from tui_probe.sass.scoreboards import wait_sites
from tui_probe.sass.snippets import UniformAssignment, assign_uniform_registers, with_initial_wait
from tui_probe.sass.trampolines import least_used_barriers, opening_words
from tui_probe.sass.uniform_registers import FIRST_FREE_UNIFORM, UNIFORM_REGISTERS, used_uniform_registers
from tui_probe.sass.uniform_replacement import without_uniform
from tui_probe.sass.variables import calls_outside
from tui_probe.sass.wait_choice import MAX_SITES, choose_group, movable_sites
from tui_probe.sass.wait_probe import FIRST_ARCHITECTURE, WaitRegisters, cleared_sums, wait_splice
from tui_probe.sass.words import MAX_REGISTERS, RESERVED, with_read_barriers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.grafting.snippet_store import SnippetStore
    from tui_probe.probe_model.probe import Probe, ProbePoint
    from tui_probe.sass.scoreboards import WaitSite
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_COUNT: Final = "1"
_CLOCKS: Final = 2
"""Ordinary registers that hold clocks."""


@dataclass(frozen=True, slots=True)
class ProbedWait:
    """A wait site with the points of the probe that are at it."""

    site: WaitSite
    points: tuple[str, ...]

    @property
    def at(self) -> int:
        """Byte offset in the kernel's code."""
        return self.site.at


@dataclass(frozen=True, slots=True)
class ProbedWaits:
    """The wait sites that are measured, of ``total`` that could be."""

    sites: list[ProbedWait]
    total: int


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
    ranked = movable_sites(target, wait_sites(target))
    size, free_uniform = MAX_SITES, _free_uniform(target)
    while True:
        sites = _chosen_sites(ranked, point, size)
        waits = [_wait_sums(probe, point, number) for number in range(len(sites))]
        code = assemble_code(target, probe, snippets, waits=waits, sampled=sampled)
        uniform = _UniformChoice.of(code, free_uniform, len(sites))
        if uniform.fitting >= len(sites):
            break
        if uniform.fitting < 1:
            raise UnsupportedKernelError(because("graft-uniform"))
        size = uniform.fitting
    probed = ProbedWaits([ProbedWait(site, (point.name,)) for site in sites], len(ranked))
    return _graft(target, uniform, sites), probed


@dataclass(frozen=True)
class _UniformChoice:
    """The code of entry and exits, its uniform registers, and those that are left for sums and what is kept."""

    code: InstructionCode
    assigned: UniformAssignment
    left: list[int]

    @classmethod
    def of(cls, code: InstructionCode, free: set[int], sites: int) -> _UniformChoice:
        """Choose uniform registers for code and sites. Exit code uses ordinary ones where the kernel leaves too few
        uniform ones.
        """
        try:
            choice = cls._assigned(code, free)
        except UnsupportedKernelError:  # not even the code of exits has enough
            choice = None
        return choice if choice and choice.fitting >= sites else cls._assigned(_with_few_uniform(code), free)

    @classmethod
    def _assigned(cls, code: InstructionCode, free: set[int]) -> _UniformChoice:
        assigned = _assign_uniform(code, free)
        taken = {pair + half for pair in assigned.exits.values() for half in (0, 1)}
        return cls(code, assigned, sorted(free - taken, reverse=True))

    @property
    def fitting(self) -> int:
        """Number of sites whose sums fit."""
        return (len(self.left) - 1 - self.code.ptx.words) // 2

    @property
    def kept(self) -> list[int]:
        """Registers that keep values from the entry to the exits."""
        return self.left[: self.code.ptx.words]

    def registers(self, clock: int, sites: int) -> WaitRegisters:
        """Return the registers of the code at sites."""
        first = self.code.ptx.words
        return WaitRegisters(clock, self.left[first : first + 1 + 2 * sites])


def _with_few_uniform(code: InstructionCode) -> InstructionCode:
    """Return the code with exit code that computes in ordinary registers: a kernel's own ones are free there."""
    if code.exit is None or code.exit.diverges:
        return code
    words, _ = without_uniform(code.exit.words, code.exit.registers, code.exit.arch)
    return replace(code, exit=replace(code.exit, words=tuple(words)))


def _chosen_sites(ranked: Sequence[WaitSite], point: ProbePoint, size: int) -> list[WaitSite]:
    """Return the sites of the groups that a point is for, up to ``size``."""
    groups = [int(position.modifiers[0]) for position in point.positions if position.is_wait]
    return [site for group in groups for site in choose_group(ranked, group - 1)[:size]]


def _free_uniform(target: GraftTarget) -> set[int]:
    used = used_uniform_registers(target.all_words(), target.arch)
    return set(range(FIRST_FREE_UNIFORM, UNIFORM_REGISTERS)) - used


def _assign_uniform(code: InstructionCode, free: set[int]) -> UniformAssignment:
    """Return uniform registers for the entry code, where none holds anything yet, and of ``free`` ones for exits."""
    entry, leaving = (sorted(inline.uniform_pairs()) if inline else [] for inline in (code.entry, code.exit))
    return assign_uniform_registers(entry, leaving, set(range(UNIFORM_REGISTERS)) - free, 0, None)


def _wait_sums(probe: Probe, point: ProbePoint, number: int) -> WaitSums:
    (save,) = (
        statement for statement in (point.after.statements if point.after else ()) if isinstance(statement, Save)
    )
    marks = {WAIT_HELPER: Mark.FIRST_NUMBER + 2 * number, _COUNT: Mark.FIRST_NUMBER + 2 * number + 1}
    return WaitSums(probe.map_named(save.map), save.values, marks, Instruction("wait", (), (), MADE_UP))


def _graft(target: GraftTarget, uniform: _UniformChoice, sites: Sequence[WaitSite]) -> Grafted:
    code, arch, clock = uniform.code, target.arch, target.registers - RESERVED
    registers = uniform.registers(clock, len(sites))
    free = _free_registers(target, code, clock + _CLOCKS, uniform.assigned.exits)
    mark_values = {Mark.FIRST_KEPT + index: MarkValue(uniform=number) for index, number in enumerate(uniform.kept)}
    opening = (
        opening_words(code.entry, replace(free, uniform=uniform.assigned.entry), mark_values) if code.entry else []
    )
    splices = [Splice(0, (*opening, *cleared_sums(registers, arch)))]
    for number, site in enumerate(sites):
        word, waits_itself = target.words[site.index], site.own is not None
        splices.append(wait_splice(site.at, word, number, registers, arch, waits_itself=waits_itself))
    leaving = _leaving_words(code, free, mark_values, registers)
    splices += [Splice(at, leaving) for at in target.exits()]
    flags = [flag for inline in code.all for flag in inline.flags]
    rewritten = with_read_barriers(target.words)
    grafted = apply_splices(target, splices, len(code.ptx.parameters()), free.registers, rewritten, flags)
    pairs = {number & ~1 for number in {*registers.uniform, *uniform.kept}}
    refuse_changes(target, grafted, uniform.assigned.pairs | pairs)
    return grafted


def _leaving_words(
    code: InstructionCode, free: FreeRegisters, kept: dict[int, MarkValue], registers: WaitRegisters
) -> tuple[Word, ...]:
    """Return the code of the exits. Behind it the sums are 0 again, for lanes of the warp that leave later."""
    assert code.exit is not None
    sums = {
        Mark.FIRST_NUMBER + 2 * number + half: MarkValue(uniform=pair[half])
        for number, pair in enumerate(registers.sums)
        for half in (0, 1)
    }
    return (*with_initial_wait(code.exit.placed(free, kept | sums)), *cleared_sums(registers, free.arch))


def _free_registers(target: GraftTarget, code: InstructionCode, end: int, uniform: dict[int, int]) -> FreeRegisters:
    """Return the registers of the entry and exit code, which has those of the kernel; ``end`` is behind the clocks'."""
    words, barriers = list(target.all_words()), _convergence_barriers(code)
    convergence, *others = lane_registers.free_barriers(words, 1 + len(barriers))
    free = FreeRegisters(
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
        registers=max(end, *(inline.registers for inline in code.all)) + RESERVED,
    )
    left = target.fewest_registers if target.fewest_registers < target.registers else MAX_REGISTERS
    if free.registers > left:
        raise UnsupportedKernelError(because("graft-registers", needed=free.registers, left=left))
    return free


def _convergence_barriers(code: InstructionCode) -> list[int]:
    return sorted({number for inline in code.all for number in inline.convergence_barriers()})

"""Graft probes at instructions and basic blocks of kernels without PTX; counts are in registers above the kernel's.

Sums that live from the entry to the exits are kept in registers, set at the grafted entry and added up at the grafted
exits, as in PTX mode. The alternative, additions to the warp's slot at each access, would hold no register, but
cost an atomic of the L2 cache for every access that a kernel makes: more traffic than what is measured. Maps of sites
have a record for each instruction, and are added to at that instruction, in both modes.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import CODE_PREFIX
from tui_probe.engine.grafting.instruction_ptx import InstructionPtx, block_kernel_name, site_kernel_name
from tui_probe.engine.grafting.sass_positions import (
    COPIES,
    RECORD_ARCHITECTURES,
    ProbedParts,
    SassSite,
    copy_sites,
    find_probed_parts,
    first_records,
    leader_record,
)
from tui_probe.engine.grafting.site_kernel_text import ENTRY, EXIT
from tui_probe.engine.grafting.site_values import Mark
from tui_probe.engine.grafting.snippet_ptx import LEADING_BYTES, MANY_LEADING_BYTES
from tui_probe.engine.warp_substitutes import without_redux
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import lane_registers
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.graft import Grafted, Splice, apply_splices
from tui_probe.sass.graft_check import refuse_changes
from tui_probe.sass.inline_code import FreeRegisters, InlineCode, MarkValue
from tui_probe.sass.loop_copies import loops_to_copy
from tui_probe.sass.record_code import RecordRegisters, copy_record_words, record_words
from tui_probe.sass.register_room import PAIRS_OF_RECORD, RecordRoom
from tui_probe.sass.scoreboards import least_used_barriers, with_read_barriers
from tui_probe.sass.snippets import UniformAssignment, assign_uniform_registers, with_initial_wait
from tui_probe.sass.trampolines import flag_value, opening_words, trampoline
from tui_probe.sass.uniform_registers import used_uniform_registers
from tui_probe.sass.uniform_replacement import without_uniform
from tui_probe.sass.variables import BY_ADDRESS, calls_outside
from tui_probe.sass.words import ALWAYS, BRANCH_STALL, MAX_REGISTERS, RESERVED, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tui_probe.engine.grafting.sass_blocks import SassBlock
    from tui_probe.engine.grafting.site_kernel_text import WaitSums
    from tui_probe.engine.grafting.site_values import InstructionFacts
    from tui_probe.engine.grafting.snippet_store import SnippetStore
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.probe_model.probe import Map, Probe
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_CALL_OPERATIONS: Final = frozenset({0x143, 0x144})
"""CALL with an absolute and with a relative target."""
_UNIFORM_PREDICATES: Final = 7
"""UP0 to UP6 can be written; the eighth reads as true."""
_UNIFORM_BRANCHES_FROM: Final = 80
"""First architecture for which ptxas lets no lanes reconverge behind ``bra.uni``; before, it does so behind each
branch.
"""
_PARAMETER_ALIGNMENT: Final = 16
"""Parameters may be read two at a time, so they must lie as they will in the kernel."""


@dataclass(frozen=True, slots=True)
class InstructionCode:
    """The SASS of a probe for the probed parts of one kernel."""

    ptx: InstructionPtx
    entry: InlineCode | None
    exit: InlineCode | None
    places: dict[tuple[str, InstructionFacts], InlineCode]
    blocks: dict[tuple[str, ...], InlineCode]

    @property
    def all(self) -> list[InlineCode]:
        """All code: inside the kernel and at its exits."""
        return [code for code in (*self.inside, self.exit) if code is not None]

    @property
    def inside(self) -> list[InlineCode]:
        """Code that runs while the kernel needs its registers, including the entry code."""
        return [code for code in (self.entry, *self.places.values(), *self.blocks.values()) if code is not None]

    def leaves_below(self, registers: int) -> bool:
        """Return whether the code of the exits has the registers of the kernel, which needs them no more, up to
        these.

        Probes of blocks keep many values, which all are in registers there at the same time.
        """
        return bool(self.blocks) and self.exit is not None and self.exit.registers <= registers

    def with_few_uniform(self) -> InstructionCode:
        """Return the code with exit code that computes in ordinary registers: a kernel's own ones are free there.

        Raises UnsupportedKernelError for exit code that cannot.
        """
        if self.exit is None or self.exit.diverges:
            return self
        words, _ = without_uniform(self.exit.words, self.exit.registers, self.exit.arch, moves_redux=True)
        return replace(self, exit=replace(self.exit, words=tuple(words)))

    def assigned_uniform(self, taken: Collection[int], carried: int = 0) -> UniformAssignment:
        """Return uniform registers that are not ``taken`` for all code but that of the entry, where a kernel has put
        nothing into any, and for ``carried`` values. Raises UnsupportedKernelError if too few are free.
        """
        entry = sorted(self.entry.uniform_pairs()) if self.entry else []
        later = (inline for inline in (*self.places.values(), *self.blocks.values(), self.exit) if inline)
        pairs = sorted({pair for inline in later for pair in inline.uniform_pairs()})
        return assign_uniform_registers(entry, pairs, taken, carried, None)


def graft_instructions(
    target: GraftTarget,
    probe: Probe,
    snippets: SnippetStore,
    map_layout: MapLayout | None = None,
    *,
    sampled: bool,
    short_records: bool = True,
) -> tuple[Grafted, ProbedParts]:
    """Put a probe's code at the instructions and blocks that it is for, at the entry and at the exits of a kernel.
    ``map_layout`` is that of the tensor maps of bulk copies. ``short_records``: records of phases may have the shorter
    code.

    Raises UnsupportedKernelError and ToolchainError.
    """
    probe = without_redux(probe, target.arch)
    if target.arch < _UNIFORM_BRANCHES_FROM:
        probe = probe.straight_form()
    parts = find_probed_parts(probe, target)
    _refuse(target, probe, parts)
    can_be_short = short_records and target.arch in RECORD_ARCHITECTURES
    record = leader_record(probe) if can_be_short else None
    if record is not None and RecordRoom.grows(target):
        with contextlib.suppress(UnsupportedKernelError):
            return _graft_records(target, probe, record, snippets, sampled=sampled)
    try:
        assembled = _assembled(target, probe, snippets, parts, map_layout, sampled=sampled)
        code, uniform = _with_uniform_registers(target, assembled)
        free, kept_registers = _free_registers(target, code, uniform.exits)
    except UnsupportedKernelError as error:
        if record is None:
            first = first_records(probe)
            if can_be_short and first is not None and (record := leader_record(first)) is not None:
                _graft_records(target, first, record, snippets, sampled=sampled, error=error)
                is_sampling = (
                    sampled and error.reason.code == "graft-snippet"
                )  # not registers: code that chooses blocks
                raise UnsupportedKernelError(
                    because("graft-sampled-records" if is_sampling else "graft-records")
                ) from error
            raise
        return _graft_records(target, probe, record, snippets, sampled=sampled, error=error)
    splices = _entry_splices(code, replace(free, uniform=uniform.entry), kept_registers)
    splices += _inner_splices(target, code, free, kept_registers, parts)
    leaving, rewritten = _exit_code(target, code, free, kept_registers)
    if code.exit is not None:
        splices = _with_exit_code(target, splices, leaving)
    has_phases = target.arch in RECORD_ARCHITECTURES and any(site.phase for site in parts.sites)
    loops = _loops_with_records(target, parts) if has_phases else ()
    return _apply(target, code, splices, free.registers, rewritten, uniform, loops), parts


def _entry_splices(code: InstructionCode, free: FreeRegisters, kept_registers: dict[int, MarkValue]) -> list[Splice]:
    return [] if code.entry is None else [Splice(0, tuple(opening_words(code.entry, free, kept_registers)))]


def _apply(
    target: GraftTarget,
    code: InstructionCode,
    splices: Sequence[Splice],
    registers: int,
    rewritten: Mapping[int, Word],
    uniform: UniformAssignment,
    loops: Sequence[Sequence[range]] = (),
) -> Grafted:
    """Put the splices into the kernel with copies of ``loops``, and check what changed. Raises
    UnsupportedKernelError.
    """
    flags = [flag for inline in code.all for flag in inline.flags]
    grafted = apply_splices(target, splices, len(code.ptx.parameters()), registers, rewritten, flags, loops)
    refuse_changes(target, grafted, uniform.pairs)
    return grafted


def _graft_records(
    target: GraftTarget,
    probe: Probe,
    record: Map,
    snippets: SnippetStore,
    *,
    sampled: bool,
    error: UnsupportedKernelError | None = None,
) -> tuple[Grafted, ProbedParts]:
    """Put a probe of phases into a kernel, with the shorter code for records. What is kept is in uniform registers. The
    code of entry and exits has the registers of the kernel. In a kernel that leaves too few registers, or whose warps
    exchange registers, each record has those that are free at its instruction.

    Raises UnsupportedKernelError, ``error`` if registers do not suffice, and ToolchainError.
    """
    room = RecordRoom.of(target)
    parts = _record_parts(target, probe, record, room)
    code = _assembled(target, probe, snippets, of_warps=True, sampled=sampled)
    code, uniform = _with_uniform_registers(target, code, code.ptx.words + 1)
    around = max(inline.registers for inline in code.all) + RESERVED
    registers = room.registers(around)
    if registers is None:
        raise error or UnsupportedKernelError(because("graft-registers", needed=around, left=MAX_REGISTERS))
    free = _free_registers_from(target, code, uniform.exits, 0, 0, registers)
    *base, count, step = (carried.number for carried in uniform.carried)
    kept_registers = {Mark.FIRST_KEPT + index: MarkValue(uniform=number) for index, number in enumerate((*base, count))}
    splices = _entry_splices(code, replace(free, uniform=uniform.entry), kept_registers)
    rewritten = with_read_barriers(target.words)
    places = [site.at // WORD_BYTES for site in parts.sites]
    loops = [] if record is COPIES else _loops_with_records(target, parts)
    copied = {place for blocks in loops for block in blocks for place in block}
    for site, ((address, value), wait) in zip(parts.sites, room.records(rewritten, places), strict=True):
        registers_of_record, place = (
            RecordRegisters(address, value, (base[0], base[1]), count, step),
            site.at // WORD_BYTES,
        )
        if site.copy is not None:
            copy = target.words[place]
            code_words = copy_record_words(
                registers_of_record, site.at, site.copy_values, record.cap or 0, wait, copy, target.arch
            )
        else:
            cycles = room.cycles_behind(place, places) if place in copied else BRANCH_STALL
            code_words = record_words(registers_of_record, site.at, record.cap or 0, wait, target.arch, cycles)
        splices.append(Splice(site.at, tuple(code_words), together=True))
    assert code.exit is not None
    splices = _with_exit_code(target, splices, tuple(with_initial_wait(code.exit.placed(free, kept_registers))))
    grafted = _apply(target, code, splices, free.registers, rewritten, uniform, loops)
    return grafted, replace(parts, short_records=True)


def _record_parts(target: GraftTarget, probe: Probe, record: Map, room: RecordRoom) -> ProbedParts:
    """Return the instructions with records: starts of phases that leave registers, or all bulk copies. Raises
    UnsupportedKernelError if one of these leaves none.
    """
    if record is not COPIES:
        return find_probed_parts(probe, target, room.has_pairs)
    sites = copy_sites(target)
    left = min(len(room.pairs(site.at // WORD_BYTES)) for site in sites)
    if left < PAIRS_OF_RECORD:
        raise UnsupportedKernelError(because("graft-registers", needed=2 * PAIRS_OF_RECORD, left=2 * left))
    parts = ProbedParts(sites, [])
    _refuse(target, probe, parts)
    return parts


def graft_copies(
    target: GraftTarget, probe: Probe, snippets: SnippetStore, *, sampled: bool
) -> tuple[Grafted, ProbedParts]:
    """Put the form of a probe that records bulk copies only into a kernel. Raises UnsupportedKernelError and
    ToolchainError.
    """
    return _graft_records(target, without_redux(probe, target.arch), COPIES, snippets, sampled=sampled)


def _loops_with_records(target: GraftTarget, parts: ProbedParts) -> list[tuple[range, ...]]:
    """Return the innermost loops around records that can be copied: if a record is in a loop whose iterations are
    phases, this one.
    """
    graph, headers = FlowGraph.of(target), set()
    for site in parts.sites:
        around = graph.loops_around(graph.block_at(site.at // WORD_BYTES))
        if site.phase is not None and site.phase.loop is not None:
            headers.add(site.phase.loop // WORD_BYTES)
        elif around:
            headers.add(graph.blocks[around[0]].start)
    return loops_to_copy(target, graph, headers)


def _with_uniform_registers(
    target: GraftTarget, code: InstructionCode, carried: int = 0
) -> tuple[InstructionCode, UniformAssignment]:
    """Return the code and its uniform registers. Exit code, which has most of them, does without where a kernel leaves
    too few. Raises UnsupportedKernelError if that is still not enough.
    """
    taken = used_uniform_registers(target.all_words(), target.arch)
    try:
        return code, code.assigned_uniform(taken, carried)
    except UnsupportedKernelError as error:
        try:
            fewer = code.with_few_uniform()
        except UnsupportedKernelError:
            raise error from None
        return fewer, fewer.assigned_uniform(taken, carried)


def _inner_splices(
    target: GraftTarget,
    code: InstructionCode,
    free: FreeRegisters,
    kept_registers: dict[int, MarkValue],
    parts: ProbedParts,
) -> list[Splice]:
    """Return the splices at instructions: for themselves, for the blocks that they are in, or for both."""
    sites, blocks = {site.at: site for site in parts.sites}, {block.at: block for block in parts.blocks}
    return [
        _site_splice(target, code, free, kept_registers, at, sites.get(at), blocks.get(at))
        for at in sorted(sites.keys() | blocks.keys())
    ]


def _site_splice(
    target: GraftTarget,
    code: InstructionCode,
    free: FreeRegisters,
    kept_registers: dict[int, MarkValue],
    at: int,
    site: SassSite | None,
    entered: SassBlock | None,
) -> Splice:
    inline, reads, block_code = [], ALWAYS, None
    displaced = target.words[at // WORD_BYTES]
    if site is not None:
        displaced = displaced if site.guarded else displaced.guarded(ALWAYS)
        sources = {**kept_registers, **site.sources(), Mark.READS: flag_value(free)}
        reads = site.reads
        for place in site.places:
            numbers = {mark: MarkValue(number=number) for mark, number in code.ptx.site_numbers(place).items()}
            inline.append((code.places[place.key], {**sources, **numbers}))
    if entered is not None:
        numbers = {
            Mark.FIRST_NUMBER + index: MarkValue(number=block.number) for index, block in enumerate(entered.codes)
        }
        block_code = code.blocks[entered.key], {**kept_registers, **numbers}
    trampoline_words = trampoline(inline, displaced, free, reads, block_code)
    return Splice(at, tuple(trampoline_words), together=True)


def _exit_code(
    target: GraftTarget, code: InstructionCode, free: FreeRegisters, kept_registers: dict[int, MarkValue]
) -> tuple[tuple[Word, ...], dict[int, Word]]:
    """Return the code of the exits, and the instructions to wait for if it reuses the kernel's registers."""
    if code.exit is None:
        return (), {}
    below = code.leaves_below(min((mark.register or 0 for mark in kept_registers.values()), default=0))
    placed = code.exit.placed(replace(free, first=0) if below else free, kept_registers)
    return tuple(with_initial_wait(placed)), with_read_barriers(target.words) if below else {}


def _with_exit_code(target: GraftTarget, splices: Sequence[Splice], leaving: tuple[Word, ...]) -> list[Splice]:
    """Add the exit code at each exit, after the code of a block that is nothing but an exit."""
    inside = {splice.at: splice.before for splice in splices if splice.at}
    exits = {at: (*inside.get(at, ()), *leaving) for at in target.exits()}
    others = [splice for splice in splices if not splice.at or splice.at not in exits]
    return [*others, *(Splice(at, exit_words) for at, exit_words in exits.items())]


def _refuse(target: GraftTarget, probe: Probe, parts: ProbedParts) -> None:
    """Raise UnsupportedKernelError for a kernel in which the probe would miss something."""
    target.refuse_functions()
    if any(site.at == 0 for site in parts.sites):
        raise UnsupportedKernelError(because("graft-position", at="0x0000"))
    functions = [section.name.removeprefix(CODE_PREFIX) for section in target.functions]
    functions += [BY_ADDRESS] * target.has_unseen_calls
    if functions and any(word.operation in _CALL_OPERATIONS for word in target.words):
        function = functions[0]
        raise UnsupportedKernelError(because("graft-called", probe=probe.name, function=function))


def _assembled(
    target: GraftTarget,
    probe: Probe,
    snippets: SnippetStore,
    parts: ProbedParts | None = None,
    map_layout: MapLayout | None = None,
    *,
    of_warps: bool = False,
    sampled: bool,
) -> InstructionCode:
    """Return the machine code of a probe. Raises UnsupportedKernelError if called functions may use what it keeps."""
    code = assemble_code(target, probe, snippets, parts, map_layout=map_layout, of_warps=of_warps, sampled=sampled)
    if code.ptx.words and (function := calls_outside(target)):  # nothing states which registers it leaves unchanged
        raise UnsupportedKernelError(because("graft-calls", function=function))
    return code


def assemble_code(
    target: GraftTarget,
    probe: Probe,
    snippets: SnippetStore,
    parts: ProbedParts | None = None,
    waits: Sequence[WaitSums] = (),
    *,
    map_layout: MapLayout | None = None,
    of_warps: bool = False,
    sampled: bool,
) -> InstructionCode:
    """Return the machine code of a probe for the probed parts of a kernel, or for the sums of its ``waits``."""
    places = [place for site in parts.sites for place in site.places] if parts else []
    block_codes = parts.blocks if parts else ()
    ptx = InstructionPtx(
        probe,
        places,
        target.arch,
        blocks=block_codes,
        waits=waits,
        map_layout=map_layout,
        of_warps=of_warps,
        sampled=sampled,
    )
    odd = target.first_added % _PARAMETER_ALIGNMENT
    for leading in (LEADING_BYTES + odd, MANY_LEADING_BYTES + odd):
        cubins = snippets.cubins(ptx.head, ptx.kernels(leading), target.arch)
        code = {name: snippets.inline_code(cubin, leading, may_exit=name == EXIT) for name, cubin in cubins.items()}
        keys = {key: code[site_kernel_name(index)] for index, key in enumerate(ptx.keys)}
        blocks = {key: code[block_kernel_name(index)] for index, key in enumerate(ptx.block_keys)}
        made = InstructionCode(ptx, code.get(ENTRY), code.get(EXIT), keys, blocks)
        if all(inline.base == target.base for inline in made.all):
            break
    return made


def _free_registers(
    target: GraftTarget, code: InstructionCode, uniform: dict[int, int]
) -> tuple[FreeRegisters, dict[int, MarkValue]]:
    """Return the registers free for the snippets, and the values of the marks of kept registers.

    Above the kernel's own registers come those of the snippets, then those that are kept. The saved predicates and the
    flag fill what lies between on account of alignment, or are the last.
    """
    top = target.registers - RESERVED
    first = lane_registers.align_register(top)
    inside = max((inline.registers for inline in code.inside), default=0)
    leaving = code.exit.registers if code.exit and not code.leaves_below(first + inside) else 0
    first_kept = first + max(inside, leaving)
    end, own = first_kept + code.ptx.words, 1 + code.ptx.has_flag
    scratch = top if first - top >= own else end
    free = _free_registers_from(target, code, uniform, first, scratch, max(end, scratch + own) + RESERVED)
    if free.registers > MAX_REGISTERS or free.registers > target.fewest_registers < target.registers:
        left = min(MAX_REGISTERS, target.fewest_registers if target.fewest_registers < target.registers else 255)
        needed = {"needed": free.registers, "left": left}
        raise UnsupportedKernelError(because("graft-registers", **needed))
    return free, {Mark.FIRST_KEPT + index: MarkValue(register=first_kept + index) for index in range(code.ptx.words)}


def _free_registers_from(
    target: GraftTarget, code: InstructionCode, uniform: dict[int, int], first: int, scratch: int, registers: int
) -> FreeRegisters:
    """Return what snippets use in a kernel, with ``first`` for their R0. Raises UnsupportedKernelError."""
    target_words = list(target.all_words())
    convergence_barriers = sorted({number for inline in code.all for number in inline.convergence_barriers()})
    convergence, *others = lane_registers.free_barriers(target_words, 1 + len(convergence_barriers))
    return FreeRegisters(
        target.arch,
        target.base,
        target.base + target.first_added,
        first,
        scratch,
        uniform,
        _predicate_numbers(target, code),
        least_used_barriers(target_words),
        lane_registers.late_predicates(target_words),
        convergence,
        dict(zip(convergence_barriers, others, strict=True)),
        registers,
    )


def _predicate_numbers(target: GraftTarget, code: InstructionCode) -> dict[int, int]:
    """Map each predicate of the uniform path that snippets write to one that the kernel does not use.

    Raises UnsupportedKernelError if too few are free.
    """
    wanted = sorted({number for inline in code.all for number in inline.uniform_predicates()})
    taken = lane_registers.uniform_predicates(target.all_words())
    free = [number for number in range(_UNIFORM_PREDICATES) if number not in taken]
    if len(free) < len(wanted):
        counts = {"free": len(free), "needed": len(wanted)}
        raise UnsupportedKernelError(because("graft-uniform-predicates", **counts))
    return dict(zip(wanted, free, strict=False))

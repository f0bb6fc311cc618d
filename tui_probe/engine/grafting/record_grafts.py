"""Graft records of phases and of bulk copies, each with code that needs four registers at its instruction, and the
forms of probes that have such records.

The code of records that ptxas makes of a snippet needs registers above the kernel's. Here the address of a warp's first
record and the number of its records are in uniform registers, and each record has two pairs of registers that are free
at its instruction. The code of entry and exits has the registers of the kernel. So kernels that leave few registers,
or whose warps exchange registers, can be probed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.grafting.instruction_code import (
    apply_code,
    assemble_code,
    entry_splices,
    free_registers,
    refuse_missed_code,
    with_exit_code,
    with_uniform_registers,
)
from tui_probe.engine.grafting.sass_positions import ProbedParts, copy_sites, find_probed_parts
from tui_probe.engine.grafting.site_values import Mark
from tui_probe.engine.warp_substitutes import without_redux
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.positions import PHASE
from tui_probe.probe_model.probe import Field, Level, Map, Save
from tui_probe.reasons import because
from tui_probe.sass.bulk_copies import bulk_copies_of
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.graft import GraftedCubin, Splice
from tui_probe.sass.inline_code import MarkValue
from tui_probe.sass.loop_copies import loops_to_copy
from tui_probe.sass.record_code import COPY_RECORD_BYTES, RecordRegisters, copy_record_words, record_words
from tui_probe.sass.register_room import PAIRS_OF_RECORD, RecordRoom
from tui_probe.sass.scoreboards import with_read_barriers
from tui_probe.sass.snippets import with_initial_wait
from tui_probe.sass.words import BRANCH_STALL, MAX_REGISTERS, RESERVED, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.engine.grafting.sass_positions import SassSite
    from tui_probe.engine.grafting.snippet_store import SnippetStore
    from tui_probe.probe_model.probe import Probe, ProbePoint
    from tui_probe.sass.record_code import OperandWait
    from tui_probe.sass.snippets import KeptRegister
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word


_MAX_COPIES: Final = 2048
"""Records of 16 bytes that a warp keeps."""
COPIES: Final = Map(
    "copies",
    Level.WARP,
    tuple(Field(name, "u32", 4 * index) for index, name in enumerate(("clock", "line", "first", "second"))),
    COPY_RECORD_BYTES,
    _MAX_COPIES,
    leader=True,
)
"""Map of the form of a probe that records bulk copies only."""
RECORD_ARCHITECTURES: Final = range(90, 100)
"""Architectures for which there is shorter code of records, which kernels that leave few registers have room for."""
_CLOCK_AND_LINE: Final = ("%clock", "LINE")
"""Values of a record of phases: a probe that saves others has no shorter code."""


def first_records_form(probe: Probe) -> Probe | None:
    """Return the form of a probe in which warps keep their first records; None if they do already."""
    maps = tuple(replace(own_map, latest=False, every=0) for own_map in probe.maps)
    first_form = replace(probe, maps=maps)
    return first_form if maps != probe.maps else None


def leader_map(probe: Probe) -> Map | None:
    """Return the map whose records, clock and line of a phase, are all that a probe does between entry and exits; None
    for a probe that does something else.
    """
    inner_points = [point for point in probe.points if not all(position.is_kernel for position in point.positions)]
    snippets = [point.before for point in inner_points if point.after is None and point.positions[0].opcode == PHASE]
    saves = [snippet.statements for snippet in snippets if snippet is not None]
    if len(inner_points) != 1 or len(saves) != 1 or len(saves[0]) != 1:
        return None
    (save,) = saves[0]
    if not isinstance(save, Save) or save.values != _CLOCK_AND_LINE:
        return None
    own_map = probe.map_named(save.map)
    does_more = any(another_map.cap != 1 for another_map in probe.maps if another_map is not own_map) or probe.registers
    return own_map if own_map.leader and not own_map.latest and not own_map.every and not does_more else None


def copies_form(probe: Probe, target: GraftTarget) -> Probe | None:
    """Return the form of a probe that records the bulk copies of a kernel and what is recorded once for a warp when it
    begins; None if the probe has no such form, or the kernel no copies.
    """
    if not probe.records_copies or not bulk_copies_of(target) or target.arch not in RECORD_ARCHITECTURES:
        return None
    points = tuple(point for point in probe.points if _saves_at_entry(point))
    map_names = {name for point in points for name in point.saved_maps}
    entry_maps = [own_map for own_map in probe.maps if own_map.name in map_names]
    if any(own_map.cap != 1 for own_map in entry_maps):  # the uniform registers are for the records of COPIES
        return None
    return replace(probe, points=points, maps=(*entry_maps, COPIES), registers={})


def _saves_at_entry(point: ProbePoint) -> bool:
    statements = point.before.statements if point.before and not point.after else ()
    is_entry = all(position.is_kernel for position in point.positions)
    return (
        is_entry
        and bool(statements)
        and all(isinstance(statement, Save) and not statement.adds for statement in statements)
    )


def graft_records(
    target: GraftTarget,
    probe: Probe,
    record_map: Map,
    snippets: SnippetStore,
    *,
    samples_blocks: bool,
    error: UnsupportedKernelError | None = None,
) -> tuple[GraftedCubin, ProbedParts]:
    """Put a probe into a kernel whose records, between entry and exits, are all in the map ``record_map``.

    Raises UnsupportedKernelError, ``error`` if registers do not suffice, and ToolchainError.
    """
    room = RecordRoom.from_target(target)
    parts = _record_parts(target, probe, record_map, room)
    code = assemble_code(target, probe, snippets, of_warps=True, samples_blocks=samples_blocks)
    code, uniform = with_uniform_registers(target, code, code.ptx.words + 1)
    needed_registers = max(inline.registers for inline in code.all_code) + RESERVED
    registers = room.registers(needed_registers)
    if registers is None:
        raise error or UnsupportedKernelError(because("graft-registers", needed=needed_registers, left=MAX_REGISTERS))
    free = free_registers(target, code, uniform.exits, first_register=0, scratch=0, registers=registers)
    warp_registers = _WarpRegisters.from_carried(uniform.carried)
    splices = entry_splices(code, replace(free, uniform=uniform.entry), warp_registers.marks)
    rewritten = with_read_barriers(target.words)
    loops = [] if record_map is COPIES else loops_with_records(target, parts)
    splices += _record_splices(target, parts.sites, warp_registers, record_map.cap or 0, room, rewritten, loops)
    assert code.exit is not None
    splices = with_exit_code(target, splices, tuple(with_initial_wait(code.exit.place(free, warp_registers.marks))))
    grafted = apply_code(target, code, splices, free.registers, rewritten, uniform, loops)
    return grafted, replace(parts, short_records=True)


def can_record_first(target: GraftTarget, probe: Probe, snippets: SnippetStore, *, samples_blocks: bool) -> bool:
    """Return whether a kernel has room for the form of a probe in which warps keep their first records.

    A probe that keeps the latest records, or those of some iterations, has no shorter code: its refusal can then advise
    the user to record the first ones. Raises ToolchainError.
    """
    first_form = first_records_form(probe)
    record_map = None if first_form is None else leader_map(first_form)
    if first_form is None or record_map is None:
        return False
    try:
        graft_records(target, first_form, record_map, snippets, samples_blocks=samples_blocks)
    except UnsupportedKernelError:
        return False
    return True


def graft_copies(
    target: GraftTarget, probe: Probe, snippets: SnippetStore, *, samples_blocks: bool
) -> tuple[GraftedCubin, ProbedParts]:
    """Put the form of a probe that records bulk copies only into a kernel. Raises UnsupportedKernelError and
    ToolchainError.
    """
    return graft_records(target, without_redux(probe, target.arch), COPIES, snippets, samples_blocks=samples_blocks)


def loops_with_records(target: GraftTarget, parts: ProbedParts) -> list[tuple[range, ...]]:
    """Return the innermost loops around records that can be copied: if a record is in a loop whose iterations are
    phases, this one.
    """
    graph, headers = FlowGraph.from_target(target), set()
    for site in parts.sites:
        loops = graph.loops_around(graph.block_at(site.offset // WORD_BYTES))
        if site.phase is not None and site.phase.loop is not None:
            headers.add(site.phase.loop // WORD_BYTES)
        elif loops:
            headers.add(graph.blocks[loops[0]].start)
    return loops_to_copy(target, graph, headers)


@dataclass(frozen=True, slots=True)
class _WarpRegisters:
    """Numbers of the uniform registers that live as long as the kernel: both halves of the address of the warp's first
    record, the number of records, and one for the code of a record.
    """

    base: tuple[int, int]
    count: int
    step: int

    @classmethod
    def from_carried(cls, carried: Sequence[KeptRegister]) -> _WarpRegisters:
        """Name registers that were assigned in this order."""
        low_register, high_register, count, step = (register.number for register in carried)
        return cls((low_register, high_register), count, step)

    @property
    def marks(self) -> dict[int, MarkValue]:
        """Return what replaces the marks of kept registers in the code of entry and exits."""
        numbers = (*self.base, self.count)
        return {Mark.FIRST_KEPT + index: MarkValue(uniform=number) for index, number in enumerate(numbers)}

    def with_pairs(self, pairs: Sequence[int]) -> RecordRegisters:
        """Return the registers of a record; ``pairs`` are the even numbers of those free at its instruction."""
        address, value = pairs
        return RecordRegisters(address, value, self.base, self.count, self.step)


def _record_splices(
    target: GraftTarget,
    sites: Sequence[SassSite],
    warp_registers: _WarpRegisters,
    cap: int,
    room: RecordRoom,
    rewritten: Mapping[int, Word],
    loops: Sequence[Sequence[range]],
) -> list[Splice]:
    """Return the code of each record, of up to ``cap`` in a warp. ``rewritten`` are the kernel's instructions that get
    read barriers, ``loops`` those that are copied for the records in them.
    """
    indices = [site.offset // WORD_BYTES for site in sites]
    copied = {index for blocks in loops for block in blocks for index in block}
    splices = []
    for site, index, (pairs, wait) in zip(sites, indices, room.records(rewritten, indices), strict=True):
        registers = warp_registers.with_pairs(pairs)
        if site.copy is not None:
            code = _copy_words(target, site, registers, cap, wait)
        else:
            cycles = room.cycles_after(index, indices) if index in copied else BRANCH_STALL
            code = record_words(registers, site.offset, cap, wait, target.arch, cycles)
        splices.append(Splice(site.offset, tuple(code), runs_in_all_lanes=True))
    return splices


def _copy_words(
    target: GraftTarget, site: SassSite, registers: RecordRegisters, cap: int, wait: OperandWait
) -> list[Word]:
    copy = target.words[site.offset // WORD_BYTES]
    return copy_record_words(registers, site.offset, site.copy_values, cap, wait, copy, target.arch)


def _record_parts(target: GraftTarget, probe: Probe, record_map: Map, room: RecordRoom) -> ProbedParts:
    """Return the instructions with records: starts of phases that leave registers, or all bulk copies. Raises
    UnsupportedKernelError if one of these leaves none.
    """
    if record_map is not COPIES:
        return find_probed_parts(probe, target, room.has_pairs)
    sites = copy_sites(target)
    pair_count = min(len(room.pairs(site.offset // WORD_BYTES)) for site in sites)
    if pair_count < PAIRS_OF_RECORD:
        raise UnsupportedKernelError(because("graft-registers", needed=2 * PAIRS_OF_RECORD, left=2 * pair_count))
    parts = ProbedParts(sites, [])
    refuse_missed_code(target, probe, parts)
    return parts

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

from tui_probe.engine.grafting.instruction_code import (
    InstructionCode,
    apply_code,
    assemble_code,
    entry_splices,
    free_registers,
    refuse_missed_code,
    with_exit_code,
    with_uniform_registers,
)
from tui_probe.engine.grafting.record_grafts import (
    RECORD_ARCHITECTURES,
    can_record_first,
    graft_records,
    leader_map,
    loops_with_records,
)
from tui_probe.engine.grafting.sass_positions import ProbedParts, SassSite, find_probed_parts
from tui_probe.engine.grafting.site_values import Mark
from tui_probe.engine.warp_substitutes import without_redux
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import lane_registers
from tui_probe.sass.graft import GraftedCubin, Splice
from tui_probe.sass.inline_code import FreeRegisters, InlineCode, MarkValue
from tui_probe.sass.register_room import RecordRoom
from tui_probe.sass.scoreboards import with_read_barriers
from tui_probe.sass.snippets import with_initial_wait
from tui_probe.sass.trampolines import flag_value, trampoline
from tui_probe.sass.words import MAX_REGISTERS, PT, RESERVED, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.engine.grafting.sass_blocks import SassBlock
    from tui_probe.engine.grafting.snippet_store import SnippetStore
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.probe_model.probe import Probe
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.trampolines import PlacedSnippet
    from tui_probe.sass.words import Word

_UNIFORM_BRANCHES_FROM: Final = 80
"""First architecture for which ptxas lets no lanes reconverge behind ``bra.uni``; before, it does so behind each
branch.
"""


def graft_instructions(
    target: GraftTarget,
    probe: Probe,
    snippets: SnippetStore,
    map_layout: MapLayout | None = None,
    *,
    samples_blocks: bool,
    short_records: bool = True,
) -> tuple[GraftedCubin, ProbedParts]:
    """Put a probe's code at the instructions and blocks that it is for, at the entry and at the exits of a kernel.
    ``map_layout`` is that of the tensor maps of bulk copies. ``short_records``: records of phases may have the shorter
    code.

    Raises UnsupportedKernelError and ToolchainError.
    """
    probe = without_redux(probe, target.arch)
    if target.arch < _UNIFORM_BRANCHES_FROM:
        probe = probe.straight_form()
    parts = find_probed_parts(probe, target)
    refuse_missed_code(target, probe, parts)
    can_be_short = short_records and target.arch in RECORD_ARCHITECTURES
    record = leader_map(probe) if can_be_short else None
    if record is not None and RecordRoom.can_grow(target):
        with contextlib.suppress(UnsupportedKernelError):
            return graft_records(target, probe, record, snippets, samples_blocks=samples_blocks)
    try:
        code = assemble_code(target, probe, snippets, parts, map_layout=map_layout, samples_blocks=samples_blocks)
        code, uniform = with_uniform_registers(target, code)
        free, kept_registers = _registers_above_kernel(target, code, uniform.exits)
    except UnsupportedKernelError as error:
        if record is not None:
            return graft_records(target, probe, record, snippets, samples_blocks=samples_blocks, error=error)
        if can_be_short and can_record_first(target, probe, snippets, samples_blocks=samples_blocks):
            refused_sample = (
                samples_blocks and error.reason.code == "graft-snippet"
            )  # code that chooses blocks, not registers
            raise UnsupportedKernelError(
                because("graft-sampled-records" if refused_sample else "graft-records")
            ) from error
        raise
    placed_code = _PlacedCode(target, code, free, kept_registers)
    splices = entry_splices(code, replace(free, uniform=uniform.entry), kept_registers)
    splices += placed_code.splices(parts)
    if code.exit is not None:
        splices = with_exit_code(target, splices, placed_code.exit_words(code.exit))
    rewritten = with_read_barriers(target.words) if placed_code.reuses_kernel_registers else {}
    has_phases = target.arch in RECORD_ARCHITECTURES and any(site.phase for site in parts.sites)
    loops = loops_with_records(target, parts) if has_phases else ()
    return apply_code(target, code, splices, free.registers, rewritten, uniform, loops), parts


@dataclass(frozen=True, slots=True)
class _PlacedCode:
    """The code of a probe with registers of one kernel. ``kept_registers`` are by the mark that they replace."""

    target: GraftTarget
    code: InstructionCode
    free: FreeRegisters
    kept_registers: Mapping[int, MarkValue]

    def splices(self, parts: ProbedParts) -> list[Splice]:
        """Return the splices at instructions: for themselves, for the blocks that they are in, or for both."""
        sites, blocks = (
            {site.offset: site for site in parts.sites},
            {block.code_offset: block for block in parts.blocks},
        )
        return [
            self._splice(offset, sites.get(offset), blocks.get(offset))
            for offset in sorted(sites.keys() | blocks.keys())
        ]

    def _splice(self, offset: int, site: SassSite | None, block: SassBlock | None) -> Splice:
        """Return the splice at an instruction: a probed ``site``, the first of an ``block`` block, or both."""
        displaced = self.target.words[offset // WORD_BYTES]
        if site is not None and not site.is_guarded:
            displaced = displaced.with_guard(PT)
        site_code, read_predicate = ([], PT) if site is None else (self._site_code(site), site.read_predicate)
        block_code = None if block is None else self._block_code(block)
        return Splice(
            offset,
            tuple(trampoline(site_code, displaced, self.free, read_predicate, block_code)),
            runs_in_all_lanes=True,
        )

    def _site_code(self, site: SassSite) -> list[PlacedSnippet]:
        """Return the code of each snippet at an instruction, with the values of its marks."""
        sources = {**self.kept_registers, **site.mark_values(), Mark.READ_FLAG: flag_value(self.free)}
        numbers = [self.code.ptx.site_numbers(place) for place in site.places]
        return [
            (
                self.code.places[place.key],
                sources | {mark: MarkValue(number=number) for mark, number in site_numbers.items()},
            )
            for place, site_numbers in zip(site.places, numbers, strict=True)
        ]

    def _block_code(self, block: SassBlock) -> PlacedSnippet:
        """Return the code of a block's snippets, with the values of its marks."""
        numbers = {
            Mark.FIRST_NUMBER + index: MarkValue(number=snippet.number) for index, snippet in enumerate(block.codes)
        }
        return self.code.blocks[block.key], {**self.kept_registers, **numbers}

    @property
    def reuses_kernel_registers(self) -> bool:
        """Return whether the code of the exits reuses the kernel's registers, for whose last readers it must wait."""
        first_kept = min((value.register or 0 for value in self.kept_registers.values()), default=0)
        return self.code.exit_fits(first_kept)

    def exit_words(self, code: InlineCode) -> tuple[Word, ...]:
        """Return the code of the exits in its registers."""
        free = replace(self.free, first_register=0) if self.reuses_kernel_registers else self.free
        return tuple(with_initial_wait(code.place(free, self.kept_registers)))


def _registers_above_kernel(
    target: GraftTarget, code: InstructionCode, uniform: dict[int, int]
) -> tuple[FreeRegisters, dict[int, MarkValue]]:
    """Return the registers free for the snippets, and the values of the marks of kept registers.

    Above the kernel's own registers come those of the snippets, then those that are kept. The saved predicates and the
    flag fill what lies between on account of alignment, or are the last. Raises UnsupportedKernelError if that exceeds
    what a thread may have, or what warps that exchange registers leave.
    """
    top = target.registers - RESERVED
    first_register = lane_registers.align_register(top)
    inner_count = max((inline.registers for inline in code.inner_code), default=0)
    exit_count = code.exit.registers if code.exit and not code.exit_fits(first_register + inner_count) else 0
    first_kept = first_register + max(inner_count, exit_count)
    kept_end, scratch_count = first_kept + code.ptx.words, 1 + code.ptx.has_flag
    scratch = top if first_register - top >= scratch_count else kept_end
    registers = max(kept_end, scratch + scratch_count) + RESERVED
    free = free_registers(target, code, uniform, first_register=first_register, scratch=scratch, registers=registers)
    exchanges = target.min_registers < target.registers
    limit = min(MAX_REGISTERS, target.min_registers) if exchanges else MAX_REGISTERS
    if registers > limit:
        raise UnsupportedKernelError(because("graft-registers", needed=registers, left=limit))
    return free, {Mark.FIRST_KEPT + index: MarkValue(register=first_kept + index) for index in range(code.ptx.words)}

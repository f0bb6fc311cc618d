"""Graft probes into kernels without PTX.

The snippet is the code of the PTX mode, inserted into an empty kernel and assembled by ptxas once per probe and
architecture. ``kernel.info`` also has, for such a kernel:

    way graft
    grafted OFFSET … appended START     byte offsets in the kernel's code: replaced instructions, added code
    patch KIND OFFSET ADDEND NAME       to be written into probed.bin at that offset before it is loaded: the address of
                                        the original module's NAME, plus ADDEND. KIND: abs64, abs32lo, abs32hi
    constant NAME SIZE                  to be copied from the original's constant of that name before each launch
"""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.grafting.instruction_grafts import graft_instructions
from tui_probe.engine.grafting.record_grafts import copies_form, graft_copies
from tui_probe.engine.grafting.sass_positions import excluded_copies, has_boxes, has_optional_sites, site_offsets
from tui_probe.engine.grafting.sass_site_file import sass_site_file
from tui_probe.engine.grafting.snippet_ptx import (
    ENTRY_KERNEL,
    EXIT_KERNEL,
    FLAT_KERNEL,
    LEADING_BYTES,
    MANY_LEADING_BYTES,
    SnippetPtx,
    is_graftable,
    snippet_ptx,
)
from tui_probe.engine.grafting.snippet_store import SnippetStore
from tui_probe.engine.grafting.stay_positions import blocks_may_wait, sass_form
from tui_probe.engine.grafting.wait_grafts import ProbedWaits, graft_waits
from tui_probe.engine.kernel_texts import SASS_MODE_LINE, kernel_info
from tui_probe.engine.refusals import is_for_instructions, no_match_reason, refuse_architecture
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.probe import Level
from tui_probe.probe_model.storage import map_slots
from tui_probe.reasons import because
from tui_probe.sass.graft import GraftedCubin, Splice, apply_splices
from tui_probe.sass.graft_check import refuse_changes
from tui_probe.sass.scoreboards import with_read_barriers
from tui_probe.sass.snippets import Snippet, assign_uniform_registers, with_final_wait, with_initial_wait
from tui_probe.sass.target import PARAMETER_BYTES, GraftTarget
from tui_probe.sass.uniform_registers import UNIFORM_KEPT_BY_CALLS, used_uniform_registers
from tui_probe.sass.variables import calls_outside
from tui_probe.sass.words import EXIT, MAX_REGISTERS, RESERVED, WORD_BYTES, branch_word, without_guard

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from tui_probe.binaries.cubin import Cubin
    from tui_probe.engine.assembler import Assembler
    from tui_probe.engine.cache import Cache
    from tui_probe.engine.grafting.sass_blocks import SassBlock
    from tui_probe.engine.grafting.sass_positions import SassSite
    from tui_probe.engine.grafting.wait_grafts import ProbedWait
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.probe_model.probe import Probe
    from tui_probe.sass.nv_info import Attribute
    from tui_probe.sass.words import Word


_FEW_REGISTERS: Final = frozenset({"graft-registers", "graft-uniform"})
"""Codes of kernels in which the code of a probe has too few registers."""
_CODE_ALIGNMENT: Final = 16
"""ptxas reads parameters together where they begin at a multiple of this."""
_CODE_ASSEMBLERS: Final = 4
"""Assemblies of the code at a time: at two offsets for each of two alignments."""
_SECOND_ASSEMBLY_OFFSET: Final = 0x5A0
"""Bytes between the two parameter offsets for which the code is assembled: many bits are set, so that a field read
wrongly shows.
"""


@dataclass(frozen=True, slots=True)
class ProbeCode:
    """SASS of a probe for one architecture: the snippets at the entry and at the exits.

    ``entry`` is None for a probe without entry code. ``flat_exit`` is the exit code of flat launches, which branches to
    an ``EXIT`` in other launches; None: flat launches use ``exit``, too.
    """

    ptx: SnippetPtx
    entry: Snippet | None
    exit: Snippet
    flat_exit: Snippet | None

    @property
    def registers(self) -> int:
        """Registers that a kernel must have for it."""
        return max(snippet.registers for snippet in self._snippets)

    @property
    def flags(self) -> list[Attribute]:
        """Attributes that the driver needs for it."""
        return [flag for snippet in self._snippets for flag in snippet.flags]

    @property
    def exit_pairs(self) -> list[int]:
        """Even numbers of the uniform register pairs at exits, sorted."""
        return sorted({*self.exit.uniform_pairs(), *(self.flat_exit.uniform_pairs() if self.flat_exit else ())})

    @property
    def _snippets(self) -> list[Snippet]:
        return [snippet for snippet in (self.exit, self.flat_exit, self.entry) if snippet]


@dataclass(frozen=True, slots=True)
class GraftedKernel:
    """A kernel with a probe, and the texts of its files.

    ``pruned_image`` is the cubin without the probe. ``info`` is the text of kernel.info, ``sites`` that of sites.json;
    ``log_text`` is for process.log.
    """

    pruned_image: bytes
    grafted: GraftedCubin
    info: str
    sites: str
    log_text: str
    in_slots: bool = False
    short_records: bool = False
    """True if records of phases have the shorter code."""
    copies_only: bool = False
    """True if only bulk copies are recorded."""

    @property
    def probed_image(self) -> bytes:
        """Cubin with the probe."""
        return self.grafted.image


class Grafter:
    """Grafts one probe. The probe's code is assembled once for each architecture. Safe to use from several threads."""

    def __init__(self, probe: Probe, assembler: Assembler, cache: Cache | None = None, *, samples_blocks: bool) -> None:
        self._whole_probe = _with_lanes_summed(sass_form(probe))
        self._probe = self._whole_probe.without_optional_maps()
        self._snippets = SnippetStore(assembler, cache)
        self._samples_blocks = samples_blocks
        self._codes: dict[tuple[int, int, bool], ProbeCode] = {}
        self._pool = ThreadPoolExecutor(_CODE_ASSEMBLERS, thread_name_prefix="snippets")
        self._assemblies: dict[tuple[int, int, bool], Future[ProbeCode]] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Wait until all assemblies have ended, also those of the other alignment that no kernel needed."""
        self._pool.shutdown(wait=True)

    def code(self, target: GraftTarget, *, in_slots: bool = False) -> ProbeCode:
        """Return the probe's code for a kernel. Raises UnsupportedKernelError and ToolchainError."""
        misalignment = target.added_offset % _CODE_ALIGNMENT
        code = self._code(target.arch, LEADING_BYTES + misalignment, in_slots)
        return (
            code
            if code.exit.base == target.base
            else self._code(target.arch, MANY_LEADING_BYTES + misalignment, in_slots)
        )

    def _code(self, arch: int, leading_bytes: int, in_slots: bool) -> ProbeCode:
        with self._lock:  # held during the assembly: kernels that are prepared meanwhile need the same code
            key = arch, leading_bytes, in_slots
            if key not in self._codes:
                self._codes[key] = self._assemble_checked(*key)
            return self._codes[key]

    def graft(
        self,
        cubin: Cubin,
        name: str,
        map_layout: MapLayout | None = None,
        *,
        in_slots: bool = False,
        short_records: bool = True,
    ) -> GraftedKernel:
        """Put the probe into a kernel.

        ``map_layout`` is that of the tensor maps of bulk copies. ``in_slots``: values that live from the entry to the
        exits are kept in the slots. ``short_records``: records of phases may have the shorter code.

        Raises UnsupportedKernelError, ImageError and ToolchainError.
        """
        refuse_architecture(cubin.arch)
        if self._probe.reads_allocations:
            raise UnsupportedKernelError(because("graft-snippet", what="code that searches the list of allocations"))
        if any(point.within for point in self._probe.points):
            raise UnsupportedKernelError(because("graft-snippet", what="code for selected source lines"))
        target = GraftTarget.from_cubin(cubin, name)
        try:
            return self._graft_best_form(target, cubin, map_layout, in_slots, short_records)
        except UnsupportedKernelError as error:
            form = copies_form(self._probe, target) if error.reason.code in _FEW_REGISTERS else None
            if form is None:
                raise
            with contextlib.suppress(UnsupportedKernelError):
                return self._graft_copies(target, cubin, form)
            raise

    def _graft_best_form(
        self, target: GraftTarget, cubin: Cubin, map_layout: MapLayout | None, in_slots: bool, short_records: bool
    ) -> GraftedKernel:
        probe = self._whole_probe if has_optional_sites(self._whole_probe, target) else self._probe
        try:
            return self._graft_form(target, cubin, probe, map_layout, in_slots=in_slots, short_records=short_records)
        except UnsupportedKernelError:
            if probe is self._probe and not has_boxes(target):
                raise
        # Without optional maps and the sizes of boxes, the probe needs fewer registers.
        return self._graft_form(target, cubin, self._probe, None, in_slots=in_slots, short_records=short_records)

    def _graft_copies(self, target: GraftTarget, cubin: Cubin, form: Probe) -> GraftedKernel:
        """Put the form of the probe that records bulk copies only into a kernel."""
        grafted, parts = graft_copies(target, form, self._snippets, samples_blocks=self._samples_blocks)
        info = kernel_info(
            target.name,
            target.parameters,
            map_slots(form, {}),
            form.callback,
            samples_blocks=self._samples_blocks,
            has_independent_blocks=not blocks_may_wait(target.words, target.arch),
            note=because("graft-copies", probe=form.name, copies=len(parts.sites)),
            way=_info_lines(grafted),
        )
        sites = sass_site_file(form.name, target, parts.sites, [], {}, copies_only=True)
        return GraftedKernel(cubin.image, grafted, info, sites, _log_text(target, grafted, 0), copies_only=True)

    def _graft_form(
        self,
        target: GraftTarget,
        cubin: Cubin,
        probe: Probe,
        map_layout: MapLayout | None,
        *,
        in_slots: bool,
        short_records: bool,
    ) -> GraftedKernel:
        """Put the probe into a kernel, or its form without optional maps."""
        lines: dict[str, list[int]] = {}
        sites: list[SassSite] = []
        blocks: list[SassBlock] = []
        waits, missing_starts, has_short_records = ProbedWaits([], ()), 0, False
        if self._probe.needs_machine_code:
            grafted, waits = graft_waits(target, probe, self._snippets, samples_blocks=self._samples_blocks)
            lines, rewritten = _wait_offsets(probe, waits.sites), 0
        elif is_graftable(probe):
            grafted, rewritten = graft_code(target, self.code(target, in_slots=in_slots))
        else:
            grafted, parts = graft_instructions(
                target,
                probe,
                self._snippets,
                map_layout,
                samples_blocks=self._samples_blocks,
                short_records=short_records,
            )
            sites, blocks, missing_starts, has_short_records = (
                parts.sites,
                parts.blocks,
                parts.missing_starts,
                parts.short_records,
            )
            lines, rewritten = site_offsets(probe, sites), 0
        has_sites = bool(sites or blocks or waits.sites)
        if not has_sites and probe.is_resident:
            raise UnsupportedKernelError(because("nothing-to-watch"))
        info = kernel_info(
            target.name,
            target.parameters,
            map_slots(probe, lines),
            probe.callback,
            samples_blocks=self._samples_blocks,
            has_independent_blocks=not blocks_may_wait(target.words, target.arch),
            note=excluded_copies(self._whole_probe, probe, target)
            or (None if has_sites or not is_for_instructions(probe) else no_match_reason(probe)),
            way=_info_lines(grafted),
        )
        log_text = _log_text(target, grafted, rewritten) + (
            "\n[graft] between entry and exits, values of the probe are in its slots, not in registers"
            if in_slots
            else ""
        )
        all_sites: list[SassSite | ProbedWait] = [*sites, *waits.sites]
        sites_text = sass_site_file(
            probe.name,
            target,
            all_sites,
            blocks,
            lines,
            waits.measurable_offsets,
            missing_starts,
            hidden_waits=waits.hidden_offsets,
        )
        return GraftedKernel(cubin.image, grafted, info, sites_text, log_text, in_slots, has_short_records)

    def _assemble_checked(self, arch: int, leading_bytes: int, in_slots: bool) -> ProbeCode:
        """Assemble the code at two parameter offsets and refuse it unless only known fields differ.

        The code for parameters at the other alignment, which the next kernel may need, is assembled next to it.
        """
        assemblies = [
            self._begin_assembly(arch, offset, in_slots)
            for offset in (leading_bytes, leading_bytes + _SECOND_ASSEMBLY_OFFSET)
        ]
        other_alignment = leading_bytes ^ PARAMETER_BYTES
        for offset in (other_alignment, other_alignment + _SECOND_ASSEMBLY_OFFSET):
            self._begin_assembly(arch, offset, in_slots)
        code, shifted_code = (assembly.result() for assembly in assemblies)
        pairs = [
            (code.exit, shifted_code.exit),
            (code.entry, shifted_code.entry),
            (code.flat_exit, shifted_code.flat_exit),
        ]
        if not all(snippet.reads_as(another) for snippet, another in pairs if snippet and another):
            raise UnsupportedKernelError(because("graft-snippet", what="parameters at unknown offsets"))
        return code

    def _begin_assembly(self, arch: int, leading_bytes: int, in_slots: bool) -> Future[ProbeCode]:
        """Start the assembly at one parameter offset, unless it was started. The caller holds the lock."""
        key = arch, leading_bytes, in_slots
        if key not in self._assemblies:
            self._assemblies[key] = self._pool.submit(self._assemble_at, *key)
        return self._assemblies[key]

    def _assemble_at(self, arch: int, leading_bytes: int, in_slots: bool) -> ProbeCode:
        ptx = snippet_ptx(
            self._probe, arch, samples_blocks=self._samples_blocks, leading_bytes=leading_bytes, in_slots=in_slots
        )
        cubin = self._snippets.module(ptx.text, EXIT_KERNEL, arch)
        entry = Snippet.from_cubin(cubin, ENTRY_KERNEL, leading_bytes, may_exit=False) if ptx.has_entry else None
        flat_exit = Snippet.from_cubin(cubin, FLAT_KERNEL, leading_bytes, may_exit=True) if ptx.has_flat else None
        return ProbeCode(ptx, entry, Snippet.from_cubin(cubin, EXIT_KERNEL, leading_bytes, may_exit=True), flat_exit)


def _with_lanes_summed(probe: Probe) -> Probe:
    """Return the probe with a sum over lanes at exits, also for ``sparse`` maps.

    On an H200, grafted exits at which several lanes of a warp added counts of their own lost some: of a loop that lanes
    leave one after another, 6 of 11 requests were counted.
    """
    return replace(probe, maps=tuple(replace(own_map, sparse=False) for own_map in probe.maps))


def _wait_offsets(probe: Probe, waits: Sequence[ProbedWait]) -> dict[str, list[int]]:
    offsets = [wait.offset for wait in waits]
    return {own_map.name: offsets for own_map in probe.maps if own_map.level is Level.SITE}


def graft_code(target: GraftTarget, code: ProbeCode) -> tuple[GraftedCubin, int]:
    """Graft a probe's code at the entry and all exits of a kernel.

    Returns the kernel with the number of stores that got a read barrier. Raises UnsupportedKernelError.
    """
    _check_registers(target, code)
    used_registers = used_uniform_registers(target.all_words(), target.arch)
    entry_pairs = code.entry.uniform_pairs() if code.entry else []
    first_free = _first_free_register(target, code)
    registers = assign_uniform_registers(entry_pairs, code.exit_pairs, used_registers, code.ptx.carried, first_free)
    if any(register.number < UNIFORM_KEPT_BY_CALLS for register in registers.carried if register.is_uniform) and (
        function := calls_outside(target)
    ):
        raise UnsupportedKernelError(because("graft-calls", function=function))
    base, probe_base = target.base, target.base + target.added_offset
    splices = []
    if code.entry:
        entry_words = code.entry.place(base, probe_base, registers.entry, registers.carried)
        splices.append(Splice(0, tuple(with_final_wait(entry_words))))
    exit_words = tuple(with_initial_wait(code.exit.place(base, probe_base, registers.exits, registers.carried)))
    if code.flat_exit:
        exit_words = _join_exit_code(
            target.arch,
            with_initial_wait(code.flat_exit.place(base, probe_base, registers.exits, registers.carried)),
            exit_words,
        )
    splices += [Splice(offset, exit_words) for offset in target.exits()]
    rewritten = with_read_barriers(target.words)
    carried_ends = [register.number + 1 + RESERVED for register in registers.carried if not register.is_uniform]
    grafted = apply_splices(
        target, splices, code.ptx.parameters, max(code.registers, *carried_ends, 0), rewritten, code.flags
    )
    refuse_changes(target, grafted, registers.pairs)
    return grafted, len(rewritten)


def _join_exit_code(arch: int, flat_words: Sequence[Word], general_words: Sequence[Word]) -> tuple[Word, ...]:
    """Join the exit code of flat launches with that of others, to which it branches.

    Raises UnsupportedKernelError unless the flat code has exactly one exit.
    """
    exits = [index for index, word in enumerate(flat_words) if word.opcode == EXIT]
    if len(exits) != 1:
        raise UnsupportedKernelError(
            because("graft-snippet", what=f"{len(exits)} exits in code for one-dimensional launches")
        )
    exit_index = exits[0]
    branch = branch_word(
        arch, exit_index * WORD_BYTES, (len(flat_words) + 1) * WORD_BYTES, template=flat_words[exit_index]
    )
    final_exit = without_guard(flat_words[exit_index]).with_wait_mask(0)
    return (*flat_words[:exit_index], branch, *flat_words[exit_index + 1 :], final_exit, *general_words)


def _first_free_register(target: GraftTarget, code: ProbeCode) -> int | None:
    """Return the first register above those of the kernel and the code; None where no more can be added.

    Called functions may use such a register, and warps that give registers away lose it.
    """
    register = max(target.registers, code.registers) - RESERVED
    has_room = register + code.ptx.carried + RESERVED <= MAX_REGISTERS
    keeps_registers = target.min_registers == target.registers and not calls_outside(target)
    return register if has_room and keeps_registers else None


def _check_registers(target: GraftTarget, code: ProbeCode) -> None:
    """Raise UnsupportedKernelError if a called function may exit, or warps give away registers of the code."""
    target.refuse_functions()
    if code.registers > target.min_registers < target.registers:
        counts = {"needed": code.registers, "left": target.min_registers}
        raise UnsupportedKernelError(because("graft-registers", **counts))


def _info_lines(grafted: GraftedCubin) -> list[str]:
    places = " ".join(str(offset) for offset in grafted.branches)
    lines = [SASS_MODE_LINE, f"grafted {places} appended {grafted.start}"]
    lines += [f"patch {patch.kind} {patch.offset} {patch.addend} {patch.name}" for patch in grafted.patches]
    return lines + [f"constant {name} {size}" for name, size in grafted.constants]


def _log_text(target: GraftTarget, grafted: GraftedCubin, rewritten: int) -> str:
    """Return the lines for process.log, in ptxas's format where it reports the same."""
    places = ", ".join(f"{offset:#06x}" for offset in grafted.branches)
    memory = f"{target.shared_bytes} bytes smem, {target.constants.size} bytes cmem[0]"
    return (
        f"[graft] replaced {len(grafted.branches)} of {len(target.words)} instructions: {places}\n"
        f"[graft] added {grafted.added_count} instructions at {grafted.start:#06x}; "
        f"{rewritten} stores got a read barrier\n"
        f"[graft] pruned.bin without the probe\nUsed {target.registers} registers, {memory}\n"
        f"[graft] probed.bin with the probe\nUsed {grafted.registers} registers, {memory}"
    )

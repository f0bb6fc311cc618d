"""The SASS of a probe for the instructions of one kernel: assembled, with registers that the kernel leaves free, and
put into the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import CODE_PREFIX
from tui_probe.engine.grafting.instruction_ptx import InstructionPtx, block_kernel_name, site_kernel_name
from tui_probe.engine.grafting.site_kernel_text import ENTRY, EXIT
from tui_probe.engine.grafting.snippet_ptx import LEADING_BYTES, MANY_LEADING_BYTES
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import lane_registers
from tui_probe.sass.graft import GraftedCubin, Splice, apply_splices
from tui_probe.sass.graft_check import refuse_changes
from tui_probe.sass.inline_code import FreeRegisters, InlineCode, MarkValue
from tui_probe.sass.scoreboards import least_used_barriers
from tui_probe.sass.snippets import UniformAssignment, assign_uniform_registers
from tui_probe.sass.trampolines import opening_words
from tui_probe.sass.uniform_registers import used_uniform_registers
from tui_probe.sass.uniform_replacement import without_uniform
from tui_probe.sass.variables import BY_ADDRESS, calls_outside

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tui_probe.engine.grafting.sass_positions import ProbedParts
    from tui_probe.engine.grafting.site_kernel_text import WaitSums
    from tui_probe.engine.grafting.site_values import InstructionFacts
    from tui_probe.engine.grafting.snippet_store import SnippetStore
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.probe_model.probe import Probe
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_CALL_OPERATIONS: Final = frozenset({0x143, 0x144})
"""CALL with an absolute and with a relative target."""
_UNIFORM_PREDICATES: Final = 7
"""UP0 to UP6 can be written; the eighth reads as true."""
_PARAMETER_ALIGNMENT: Final = 16
"""Bytes: parameters may be read two at a time, so they must lie as they will in the kernel."""


@dataclass(frozen=True, slots=True)
class InstructionCode:
    """The SASS of a probe for the probed parts of one kernel."""

    ptx: InstructionPtx
    entry: InlineCode | None
    exit: InlineCode | None
    places: dict[tuple[str, InstructionFacts], InlineCode]
    blocks: dict[tuple[str, ...], InlineCode]

    @property
    def all_code(self) -> list[InlineCode]:
        """The code inside the kernel and at its exits."""
        return [code for code in (*self.inner_code, self.exit) if code is not None]

    @property
    def inner_code(self) -> list[InlineCode]:
        """Code that runs while the kernel needs its registers, including the entry code."""
        return [code for code in (self.entry, *self.places.values(), *self.blocks.values()) if code is not None]

    def exit_fits(self, registers: int) -> bool:
        """Return whether the exit code may use the kernel's own first ``registers``, which the kernel needs no more.

        It does so for probes of blocks only: these keep many values, which are all in registers at an exit.
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

    def assign_uniform(self, used_registers: Collection[int], carried: int = 0) -> UniformAssignment:
        """Assign uniform registers to the code, and to ``carried`` values.

        Code inside the kernel and at its exits gets none of ``used_registers``. The entry code may get any: the kernel
        has put nothing into them there. Raises UnsupportedKernelError if too few are free.
        """
        entry = sorted(self.entry.uniform_pairs()) if self.entry else []
        later_code = (inline for inline in (*self.places.values(), *self.blocks.values(), self.exit) if inline)
        pairs = sorted({pair for inline in later_code for pair in inline.uniform_pairs()})
        return assign_uniform_registers(entry, pairs, used_registers, carried, None)


def assemble_code(
    target: GraftTarget,
    probe: Probe,
    snippets: SnippetStore,
    parts: ProbedParts | None = None,
    waits: Sequence[WaitSums] = (),
    *,
    map_layout: MapLayout | None = None,
    of_warps: bool = False,
    samples_blocks: bool,
) -> InstructionCode:
    """Return the machine code of a probe for the probed parts of a kernel, or for the sums of its ``waits``.

    Raises ToolchainError, and UnsupportedKernelError if called functions may use what the probe keeps in registers.
    """
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
        samples_blocks=samples_blocks,
    )
    misalignment = target.added_offset % _PARAMETER_ALIGNMENT
    for leading_bytes in (LEADING_BYTES + misalignment, MANY_LEADING_BYTES + misalignment):
        cubins = snippets.cubins(ptx.head, ptx.kernels(leading_bytes), target.arch)
        code_by_name = {
            name: snippets.inline_code(cubin, leading_bytes, may_exit=name == EXIT) for name, cubin in cubins.items()
        }
        keys = {key: code_by_name[site_kernel_name(index)] for index, key in enumerate(ptx.keys)}
        blocks = {key: code_by_name[block_kernel_name(index)] for index, key in enumerate(ptx.block_keys)}
        assembled_code = InstructionCode(ptx, code_by_name.get(ENTRY), code_by_name.get(EXIT), keys, blocks)
        if all(inline.base == target.base for inline in assembled_code.all_code):
            break
    if ptx.words and (function := calls_outside(target)):  # nothing states which registers it leaves unchanged
        raise UnsupportedKernelError(because("graft-calls", function=function))
    return assembled_code


def with_uniform_registers(
    target: GraftTarget, code: InstructionCode, carried: int = 0
) -> tuple[InstructionCode, UniformAssignment]:
    """Return the code and its uniform registers. Exit code, which has most of them, does without where a kernel leaves
    too few. Raises UnsupportedKernelError if that is still not enough.
    """
    used_registers = used_uniform_registers(target.all_words(), target.arch)
    try:
        return code, code.assign_uniform(used_registers, carried)
    except UnsupportedKernelError as error:
        try:
            frugal_code = code.with_few_uniform()
        except UnsupportedKernelError:
            raise error from None
        return frugal_code, frugal_code.assign_uniform(used_registers, carried)


def free_registers(
    target: GraftTarget,
    code: InstructionCode,
    uniform: dict[int, int],
    *,
    first_register: int,
    scratch: int,
    registers: int,
) -> FreeRegisters:
    """Return what snippets use in a kernel. Raises UnsupportedKernelError if too few convergence barriers or predicates
    are free.

    ``first_register``, ``scratch`` and ``registers`` are those of ``FreeRegisters``.
    """
    target_words = list(target.all_words())
    convergence_barriers = sorted({number for inline in code.all_code for number in inline.convergence_barriers()})
    convergence, *snippet_barriers = lane_registers.free_barriers(target_words, 1 + len(convergence_barriers))
    return FreeRegisters(
        arch=target.arch,
        base=target.base,
        probe_base=target.base + target.added_offset,
        first_register=first_register,
        scratch=scratch,
        uniform=uniform,
        predicates=_predicate_numbers(target, code),
        barriers=least_used_barriers(target_words),
        predicate_barriers=lane_registers.late_predicates(target_words),
        convergence=convergence,
        convergence_barriers=dict(zip(convergence_barriers, snippet_barriers, strict=True)),
        registers=registers,
    )


def _predicate_numbers(target: GraftTarget, code: InstructionCode) -> dict[int, int]:
    """Map each predicate of the uniform path that snippets write to one that the kernel does not use.

    Raises UnsupportedKernelError if too few are free.
    """
    predicates = sorted({number for inline in code.all_code for number in inline.uniform_predicates()})
    used_predicates = lane_registers.uniform_predicates(target.all_words())
    free = [number for number in range(_UNIFORM_PREDICATES) if number not in used_predicates]
    if len(free) < len(predicates):
        counts = {"free": len(free), "needed": len(predicates)}
        raise UnsupportedKernelError(because("graft-uniform-predicates", **counts))
    return dict(zip(predicates, free, strict=False))


def entry_splices(code: InstructionCode, free: FreeRegisters, kept_registers: Mapping[int, MarkValue]) -> list[Splice]:
    """Return the splice of the code at the entry, if there is any; ``kept_registers`` by the mark that they replace."""
    return [] if code.entry is None else [Splice(0, tuple(opening_words(code.entry, free, kept_registers)))]


def with_exit_code(target: GraftTarget, splices: Sequence[Splice], exit_words: tuple[Word, ...]) -> list[Splice]:
    """Add the exit code at each exit, after the code of a block that is nothing but an exit."""
    words_by_offset = {splice.offset: splice.preceding for splice in splices if splice.offset}
    exits = {offset: (*words_by_offset.get(offset, ()), *exit_words) for offset in target.exits()}
    inner_splices = [splice for splice in splices if not splice.offset or splice.offset not in exits]
    return [*inner_splices, *(Splice(offset, code_words) for offset, code_words in exits.items())]


def apply_code(
    target: GraftTarget,
    code: InstructionCode,
    splices: Sequence[Splice],
    registers: int,
    rewritten: Mapping[int, Word],
    uniform: UniformAssignment,
    loops: Sequence[Sequence[range]] = (),
) -> GraftedCubin:
    """Put the splices into the kernel with copies of ``loops``, and check what changed. Raises
    UnsupportedKernelError.
    """
    flags = [flag for inline in code.all_code for flag in inline.flags]
    grafted = apply_splices(target, splices, len(code.ptx.parameters()), registers, rewritten, flags, loops)
    refuse_changes(target, grafted, uniform.pairs)
    return grafted


def refuse_missed_code(target: GraftTarget, probe: Probe, parts: ProbedParts) -> None:
    """Raise UnsupportedKernelError for a kernel in which the probe would miss something."""
    target.refuse_functions()
    if any(site.offset == 0 for site in parts.sites):
        raise UnsupportedKernelError(because("graft-position", at="0x0000"))
    functions = [section.name.removeprefix(CODE_PREFIX) for section in target.functions]
    functions += [BY_ADDRESS] * target.has_unseen_calls
    if functions and any(word.operation in _CALL_OPERATIONS for word in target.words):
        function = functions[0]
        raise UnsupportedKernelError(because("graft-called", probe=probe.name, function=function))

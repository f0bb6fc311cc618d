"""Match probe positions against SASS: find the instructions and basic blocks of a kernel that a probe is for.

A SASS instruction is counted as the first of its PTX equivalents (:mod:`tui_probe.engine.grafting.ptx_equivalents`), so
a probe must be for all of them, or for none: a probe of only ``fma.f32`` would count each ``mad.f32`` as one. SASS
computes half precision in pairs, so a single ``fma.f16`` counts as ``fma.f16x2``. Instructions that only move a value,
such as ``HFMA2 R0, -RZ, RZ, 0, 0``, are not counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from tui_probe.engine.grafting.ptx_equivalents import (
    ARITHMETIC_FAMILIES,
    BULK_COPY,
    MMA_FAMILIES,
    SHARED_ATOMICS,
    WGMMA_FAMILIES,
    access_facts,
    is_identifiable,
    ptx_equivalent,
)
from tui_probe.engine.grafting.sass_blocks import SassBlock, additions, block_points, is_padding, probed_blocks
from tui_probe.engine.grafting.sass_phases import SassPhase, sass_phases
from tui_probe.engine.grafting.site_kernel_text import InstructionFacts, Mark, SnippetSite
from tui_probe.engine.grafting.stay_positions import stay_instructions
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.positions import matches
from tui_probe.probe_model.probe import BLOCK, PHASE, STAY, Level, Save
from tui_probe.reasons import because
from tui_probe.sass import accesses, operations
from tui_probe.sass.inline_code import MarkValue
from tui_probe.sass.words import ALWAYS, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probe_model.probe import Probe, ProbePoint
    from tui_probe.ptx.tree import Instruction
    from tui_probe.reasons import Reason
    from tui_probe.sass.accesses import MemoryAccess
    from tui_probe.sass.target import GraftTarget


@dataclass(frozen=True, slots=True)
class SassSite:
    """A probed instruction at byte offset ``at``, with the snippet of each point that is for it."""

    at: int
    places: tuple[SnippetSite, ...]
    access: MemoryAccess | None
    phase: SassPhase | None = None
    """The phase that begins here."""

    def sources(self) -> dict[int, MarkValue]:
        """Return the values of the marks in the snippets, except those of the flag and of saved registers."""
        values: dict[int, MarkValue] = {Mark.LINE: MarkValue(number=self.at)}
        if self.access is None:
            return values
        address = self.access.address
        low, high = accesses.register_pair(address.register)
        values |= {Mark.ADDRESS: MarkValue(register=low), Mark.OFFSET: MarkValue(number=address.offset)}
        if address.wide:
            values[Mark.ADDRESS + 1] = MarkValue(register=high)
        if address.uniform is not None:
            halves = range(1 if address.shared else 2)
            values |= {Mark.UNIFORM_ADDRESS + index: MarkValue(uniform=address.uniform + index) for index in halves}
        return values

    @property
    def guarded(self) -> bool:
        """Return whether its code runs only in the lanes that the instruction's guard lets execute it.

        Raises UnsupportedKernelError if that holds only for some of the points there.
        """
        (guarded, *others) = {place.point.guarded for place in self.places}
        if others:
            raise UnsupportedKernelError(because("graft-snippet", what="a predicate that differs between lanes"))
        return guarded

    @property
    def reads(self) -> int:
        """The predicate that the flag's mark reports."""
        return ALWAYS if self.access is None else self.access.reads


@dataclass(frozen=True, slots=True)
class ProbedParts:
    """Probed parts of a kernel: single instructions and basic blocks. ``missing`` starts of phases have no record."""

    sites: list[SassSite]
    blocks: list[SassBlock]
    missing: int = 0


def find_probed_parts(probe: Probe, target: GraftTarget) -> ProbedParts:
    """Return the instructions and blocks of a kernel that a probe is for.

    Raises UnsupportedKernelError if the kernel contains an instruction that cannot be decoded, or if the probe is for
    instructions that SASS does not identify: a count without them would be wrong.
    """
    opcodes = _probe_opcodes(probe)
    identifiable = all(
        is_identifiable(point, position, opcodes) for point in probe.points for position in point.positions
    )
    if not identifiable or any(point.before is None for point in block_points(probe)) or not _counts_alike(probe):
        raise UnsupportedKernelError(because("needs-instructions", probe=probe.name))
    phases, missing = _phase_sites(probe, target)
    matching, added = _matching_sites(probe, target)
    sites = [*matching, *phases]
    return ProbedParts(sites, probed_blocks(probe, target, added, {site.at for site in sites}), missing)


def excluded_copies(probe: Probe, target: GraftTarget) -> Reason | None:
    """Return the reason why the kernel's bulk copies are not counted, if it has any that the probe is for."""
    is_for_copies = any(point.ptx_only and _is_for(point, BULK_COPY) for point in probe.points)
    has_copies = any(word.operation in accesses.BULK_COPIES and not word.never_runs for word in target.words)
    return because("graft-bulk", probe=probe.name) if is_for_copies and has_copies else None


def site_offsets(probe: Probe, sites: Sequence[SassSite]) -> dict[str, list[int]]:
    """Return the byte offsets of each map's instructions in the kernel's code, by name of the map."""
    offsets: dict[str, list[int]] = {own_map.name: [] for own_map in probe.maps if own_map.level is Level.SITE}
    for site in sites:
        snippets = [place.point.before for place in site.places if place.point.before]
        saved = {
            statement.map for snippet in snippets for statement in snippet.statements if isinstance(statement, Save)
        }
        for name in offsets.keys() & saved:
            offsets[name].append(site.at)
    return offsets


def _probe_opcodes(probe: Probe) -> set[str]:
    return {position.opcode for point in probe.points for position in point.positions}


def _counts_alike(probe: Probe) -> bool:
    """Return whether the probe is for all PTX equivalents of each SASS instruction, or for none of them.

    For a matrix product this must hold for each point: SASS does not distinguish types of the same kind.
    """
    for family in (*ARITHMETIC_FAMILIES.values(), SHARED_ATOMICS):
        if len({any(_is_for(point, instruction) for point in probe.points) for instruction in family}) > 1:
            return False
    return all(
        len({_is_for(point, instruction) for instruction in family}) == 1
        for kinds in (MMA_FAMILIES, WGMMA_FAMILIES)
        for family in kinds.values()
        for point in probe.points
    )


class _MatchingSites(NamedTuple):
    """Instructions that need their own code, and the constants that other instructions add to registers.

    ``additions`` are by number of the instruction. They are summed up per basic block and added there.
    """

    sites: list[SassSite]
    additions: dict[int, Counter[str]]


def _matching_sites(probe: Probe, target: GraftTarget) -> _MatchingSites:
    """Return the instructions of a kernel that the probe's points are for."""
    opcodes = _probe_opcodes(probe)
    matching = _MatchingSites([], defaultdict(Counter))
    points_by_form: dict[tuple[str, tuple[str, ...]], list[ProbePoint]] = {}
    bulk = any(_is_for(point, BULK_COPY) and not point.ptx_only for point in probe.points)
    stays = stay_instructions(target) if STAY in opcodes else {}
    for index, word in enumerate(target.words):
        if word.never_runs or is_padding(target, index):
            continue
        if index in stays:
            matching.sites.append(_stay_site(probe, target, index, stays[index]))
            continue
        if bulk and word.operation in accesses.BULK_COPIES:
            raise UnsupportedKernelError(because("graft-bulk", probe=probe.name))
        equivalent, facts, access = ptx_equivalent(word, target.arch, opcodes)
        if equivalent is None:
            continue
        form = equivalent.opcode, equivalent.modifiers
        if form not in points_by_form:
            points_by_form[form] = [point for point in probe.points if _is_for(point, equivalent)]
        points = points_by_form[form]
        if BLOCK in opcodes and word.is_unconditional:
            known = [_known_additions(point, facts) for point in points]
            for constants in filter(None, known):
                matching.additions[index].update(constants)
            points = [point for point, constants in zip(points, known, strict=True) if constants is None]
        if points:
            own = replace(equivalent)  # records of sites are numbered by instruction, so each needs one of its own
            places = tuple(SnippetSite(point, facts, own) for point in points)
            matching.sites.append(SassSite(index * WORD_BYTES, places, access))
    return matching


def _phase_sites(probe: Probe, target: GraftTarget) -> tuple[list[SassSite], int]:
    """The starts of the kernel's phases, for a point that is at these, and the number of those without a record."""
    points = [point for point in probe.points if any(position.opcode == PHASE for position in point.positions)]
    if not points:
        return [], 0
    phases, missing = sass_phases(probe, target)
    sites = []
    for phase in phases:
        places = tuple(SnippetSite(point, InstructionFacts(), replace(phase.start.first)) for point in points)
        sites.append(SassSite(phase.at, places, None, phase))
    return sites, missing


def _stay_site(probe: Probe, target: GraftTarget, index: int, stay: Instruction) -> SassSite:
    """Return the site of an instruction at which a warp may stay: without a known address, among the others."""
    access, facts = None, InstructionFacts()
    if "access" in stay.modifiers:
        access = operations.known_access(target.words[index], target.arch)
        facts = facts if access is None else access_facts(access)
        stay = replace(stay, modifiers=stay.modifiers if access else ("other",))
    points = [point for point in probe.points if _is_for(point, stay)]
    own = replace(stay)
    return SassSite(index * WORD_BYTES, tuple(SnippetSite(point, facts, own) for point in points), access)


def _known_additions(point: ProbePoint, facts: InstructionFacts) -> dict[str, int] | None:
    """Return the constants that a point adds to registers; None if it does more, or adds unknown values."""
    size = None if facts.predicated or facts.shortened else facts.bytes
    values = {"BYTES": size, "MULTIPLY_ADDS": facts.multiply_adds}
    return additions(point.before, values) if point.before and point.after is None else None


def _is_for(point: ProbePoint, instruction: Instruction) -> bool:
    at_instructions = (
        position for position in point.positions if not (position.is_kernel or position.is_block or position.is_source)
    )
    return any(matches(position, instruction) for position in at_instructions)

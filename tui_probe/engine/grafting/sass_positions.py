"""Match probe positions against SASS: find the instructions and basic blocks of a kernel that a probe is for.

A SASS instruction is counted as the first of its PTX equivalents (:mod:`tui_probe.engine.grafting.ptx_equivalents`), so
a probe must be for all of them, or for none: a probe of only ``fma.f32`` would count each ``mad.f32`` as one. SASS
computes half precision in pairs, so a single ``fma.f16`` counts as ``fma.f16x2``. Instructions that only move a value,
such as ``HFMA2 R0, -RZ, RZ, 0, 0``, are not counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.grafting.ptx_equivalents import (
    ARITHMETIC_FAMILIES,
    MMA_FAMILIES,
    SHARED_ATOMICS,
    WGMMA_FAMILIES,
    access_facts,
    bulk_equivalent,
    is_identifiable,
    ptx_equivalent,
)
from tui_probe.engine.grafting.sass_blocks import SassBlock, additions, block_points, is_padding, probed_blocks
from tui_probe.engine.grafting.sass_phases import SassPhase, sass_phases
from tui_probe.engine.grafting.site_kernel_text import SnippetSite
from tui_probe.engine.grafting.site_values import InstructionFacts, Mark
from tui_probe.engine.grafting.stay_positions import stay_instructions
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.positions import BLOCK, PHASE, STAY, matches
from tui_probe.probe_model.probe import Level, ProbePoint, Save
from tui_probe.reasons import because
from tui_probe.sass import accesses, operations
from tui_probe.sass.bulk_copies import bulk_copies_of, bulk_copy_of
from tui_probe.sass.inline_code import MarkValue
from tui_probe.sass.words import PT, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.probe_model.probe import Probe
    from tui_probe.ptx.tree import Instruction
    from tui_probe.reasons import Reason
    from tui_probe.sass.accesses import MemoryAccess
    from tui_probe.sass.bulk_copies import BulkCopy
    from tui_probe.sass.target import GraftTarget

_COPY: Final = ProbePoint("copy", (), None, None)
"""Point of the records of bulk copies, which have no snippet."""


@dataclass(frozen=True, slots=True)
class SassSite:
    """A probed instruction at byte offset ``offset``, with the snippet of each point that is for it."""

    offset: int
    places: tuple[SnippetSite, ...]
    access: MemoryAccess | None
    phase: SassPhase | None = None
    """The phase that begins here."""
    copy: BulkCopy | None = None

    @property
    def copy_values(self) -> list[int]:
        """Uniform registers with the operands of a bulk copy: the coordinates of its box, or address and size."""
        copy = self.copy
        if copy is None:
            return []
        if copy.size is not None:
            return [copy.address, copy.address + 1, copy.size]
        return list(range(copy.coordinates, copy.coordinates + copy.dimensions))

    def mark_values(self) -> dict[int, MarkValue]:
        """Return the values of the marks in the snippets, except those of the flag and of saved registers."""
        values: dict[int, MarkValue] = {Mark.LINE: MarkValue(number=self.offset)}
        if self.copy is not None:
            values |= _copy_values(self.copy)
        if self.access is None:
            return values
        address = self.access.address
        low_register, high_register = accesses.register_pair(address.register)
        values |= {Mark.ADDRESS: MarkValue(register=low_register), Mark.OFFSET: MarkValue(number=address.offset)}
        if address.is_wide:
            values[Mark.ADDRESS + 1] = MarkValue(register=high_register)
        if address.uniform is not None:
            halves = range(1 if address.is_shared else 2)
            values |= {Mark.UNIFORM_ADDRESS + index: MarkValue(uniform=address.uniform + index) for index in halves}
        return values

    @property
    def is_guarded(self) -> bool:
        """True if its code runs only in the lanes that execute the instruction under its guard.

        Raises UnsupportedKernelError if that holds only for some of its points.
        """
        (guarded, *other_values) = {place.point.guarded for place in self.places}
        if other_values:
            raise UnsupportedKernelError(because("graft-snippet", what="a predicate that differs between lanes"))
        return guarded

    @property
    def read_predicate(self) -> int:
        """Number of the predicate whose value the flag's mark has: true in lanes that read."""
        return PT if self.access is None else self.access.read_predicate


def _copy_values(copy: BulkCopy) -> dict[int, MarkValue]:
    """Return the values of the marks of a bulk copy, which are in uniform registers."""
    registers = {Mark.UNIFORM_ADDRESS + index: copy.address + index for index in range(2)}
    registers |= {Mark.FIRST_COORDINATE + index: copy.coordinates + index for index in range(copy.dimensions)}
    if copy.size is not None:
        registers[Mark.COPY_SIZE] = copy.size
    return {mark: MarkValue(uniform=register) for mark, register in registers.items()}


@dataclass(frozen=True, slots=True)
class ProbedParts:
    """Probed parts of a kernel: single instructions and basic blocks.

    ``missing_starts`` is the number of phase starts without a record. ``short_records``: records of phases have the
    shorter code.
    """

    sites: list[SassSite]
    blocks: list[SassBlock]
    missing_starts: int = 0
    short_records: bool = False


def find_probed_parts(
    probe: Probe, target: GraftTarget, has_room: Callable[[int], bool] = lambda _: True
) -> ProbedParts:
    """Return the instructions and blocks of a kernel that a probe is for; phases begin at instructions with room.

    Raises UnsupportedKernelError if the kernel contains an instruction that cannot be decoded, or if the probe is for
    instructions that SASS does not identify: a count without them would be wrong.
    """
    opcodes = _probe_opcodes(probe)
    identifiable = all(
        is_identifiable(point, position, opcodes) for point in probe.points for position in point.positions
    )
    if not identifiable or any(point.before is None for point in block_points(probe)) or not _counts_alike(probe):
        raise UnsupportedKernelError(because("needs-instructions", probe=probe.name))
    phases, missing_starts = _phase_sites(probe, target, has_room)
    matching_sites, known_additions = _matching_sites(probe, target)
    sites = [*matching_sites, *phases]
    return ProbedParts(
        sites, probed_blocks(probe, target, known_additions, {site.offset for site in sites}), missing_starts
    )


def has_optional_sites(probe: Probe, target: GraftTarget) -> bool:
    """Return whether a kernel has instructions at which the probe saves in an optional map."""
    points = tuple(point for point in probe.points if probe.saves_in_optional_map(point))
    try:
        return bool(points and _matching_sites(replace(probe, points=points), target).sites)
    except UnsupportedKernelError:
        return False


def has_boxes(target: GraftTarget) -> bool:
    """Return whether a kernel has copies whose sizes are in tensor maps."""
    copies = (bulk_copy_of(word, target.arch) for word in target.words)
    return any(copy is not None and copy.dimensions > 0 for copy in copies)


def copy_sites(target: GraftTarget) -> list[SassSite]:
    """Return the sites of the records of a kernel's bulk copies."""
    sites = []
    for index, copy in bulk_copies_of(target).items():
        facts = InstructionFacts(is_bulk=True, is_tensor=copy.size is None, dimensions=copy.dimensions)
        place = SnippetSite(_COPY, facts, bulk_equivalent(copy))
        sites.append(SassSite(index * WORD_BYTES, (place,), None, copy=copy))
    return sites


def excluded_copies(probe: Probe, grafted_form: Probe, target: GraftTarget) -> Reason | None:
    """Return the reason why bulk copies that the probe is for are not counted; None if all are.

    ``grafted_form`` is the form of the probe in the kernel, which may lack optional maps.
    """
    points = [point for point in probe.points if point.ptx_only or point not in grafted_form.points]
    if not points:
        return None
    equivalents = [bulk_equivalent(copy) for copy in bulk_copies_of(target).values()]
    count = sum(any(_is_for(point, equivalent) for point in points) for equivalent in equivalents)
    return because("graft-bulk", probe=probe.name, copies=count) if count else None


def site_offsets(probe: Probe, sites: Sequence[SassSite]) -> dict[str, list[int]]:
    """Return the byte offsets of each map's instructions in the kernel's code, by name of the map."""
    offsets: dict[str, list[int]] = {own_map.name: [] for own_map in probe.maps if own_map.level is Level.SITE}
    for site in sites:
        snippets = [place.point.before for place in site.places if place.point.before]
        saved_names = {
            statement.map for snippet in snippets for statement in snippet.statements if isinstance(statement, Save)
        }
        for name in offsets.keys() & saved_names:
            offsets[name].append(site.offset)
    return offsets


def _probe_opcodes(probe: Probe) -> set[str]:
    return {position.opcode for position in probe.positions}


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
    stay_equivalents = stay_instructions(target) if STAY in opcodes else {}
    for index, word in enumerate(target.words):
        if word.never_runs or is_padding(target, index):
            continue
        if index in stay_equivalents:
            matching.sites.append(_stay_site(probe, target, index, stay_equivalents[index]))
            continue
        if (copy := bulk_copy_of(word, target.arch)) is not None:
            matching.sites.extend(_bulk_sites(probe, index, copy))
            continue
        equivalent, facts, access = ptx_equivalent(word, target.arch, opcodes)
        if equivalent is None:
            continue
        form = equivalent.opcode, equivalent.modifiers
        if form not in points_by_form:
            points_by_form[form] = [point for point in probe.points if _is_for(point, equivalent)]
        points = points_by_form[form]
        if BLOCK in opcodes and word.is_unconditional:
            known_additions = [_known_additions(point, facts) for point in points]
            for constants in filter(None, known_additions):
                matching.additions[index].update(constants)
            points = [point for point, constants in zip(points, known_additions, strict=True) if constants is None]
        if points:
            instruction = replace(equivalent)  # records of sites are numbered by instruction: a copy for each
            places = tuple(SnippetSite(point, facts, instruction) for point in points)
            matching.sites.append(SassSite(index * WORD_BYTES, places, access))
    return matching


def _bulk_sites(probe: Probe, index: int, copy: BulkCopy) -> list[SassSite]:
    """Return the site of a bulk copy, if points are for it that need no more than SASS has."""
    equivalent = bulk_equivalent(copy)
    facts = InstructionFacts(is_bulk=True, is_tensor=copy.size is None, dimensions=copy.dimensions)
    points = [point for point in probe.points if not point.ptx_only and _is_for(point, equivalent)]
    places = tuple(SnippetSite(point, facts, equivalent) for point in points)
    return [SassSite(index * WORD_BYTES, places, None, copy=copy)] if places else []


def _phase_sites(probe: Probe, target: GraftTarget, has_room: Callable[[int], bool]) -> tuple[list[SassSite], int]:
    """Return the starts of the kernel's phases, for a point at these, and the number of those without a record."""
    points = [point for point in probe.points if any(position.opcode == PHASE for position in point.positions)]
    if not points:
        return [], 0
    phases, missing_starts = sass_phases(probe, target, has_room)
    sites = []
    for phase in phases:
        is_counted = phase.start.sample_every > 0
        facts = InstructionFacts(is_counted=is_counted, begins=is_counted and phase.start.iterates)
        places = tuple(SnippetSite(point, facts, replace(phase.start.head)) for point in points)
        sites.append(SassSite(phase.offset, places, None, phase))
    return sites, missing_starts


def _stay_site(probe: Probe, target: GraftTarget, index: int, stay: Instruction) -> SassSite:
    """Return the site of an instruction at which a warp may stay: without a known address, among the others."""
    access, facts = None, InstructionFacts()
    if "access" in stay.modifiers:
        access = operations.known_access(target.words[index], target.arch)
        facts = facts if access is None else access_facts(access)
        stay = replace(stay, modifiers=stay.modifiers if access else ("other",))
    points = [point for point in probe.points if _is_for(point, stay)]
    instruction = replace(stay)
    return SassSite(index * WORD_BYTES, tuple(SnippetSite(point, facts, instruction) for point in points), access)


def _known_additions(point: ProbePoint, facts: InstructionFacts) -> dict[str, int] | None:
    """Return the constants that a point adds to registers; None if it does more, or adds unknown values."""
    size = None if facts.is_predicated or facts.is_shortened else facts.bytes
    values = {"BYTES": size, "MULTIPLY_ADDS": facts.multiply_adds}
    return additions(point.before, values) if point.before and point.after is None else None


def _is_for(point: ProbePoint, instruction: Instruction) -> bool:
    at_instructions = (
        position for position in point.positions if not (position.is_kernel or position.is_block or position.is_source)
    )
    return any(matches(position, instruction) for position in at_instructions)

"""Match probe positions against SASS: the PTX instructions that each SASS instruction may have been.

One instruction stands for several of PTX: an ``FFMA`` for ``fma.f32`` and ``mad.f32``. It is counted as the first of
them, so a probe must be for all of them, or for none: one of only ``fma.f32`` would count the others as such. Half
precision is always computed in pairs here, so a single ``fma.f16`` counts as ``fma.f16x2``. An operation that the
compiler only moves a value with, such as ``HFMA2 R0, -RZ, RZ, 0, 0``, is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.grafting.sass_blocks import SassBlock, additions, block_points, is_padding, probed_blocks
from tui_probe.engine.grafting.sass_phases import SassPhase, sass_phases
from tui_probe.engine.grafting.site_kernel_text import InstructionFacts, Mark, SnippetSite
from tui_probe.engine.grafting.stay_positions import stay_instructions
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.positions import MERGED, matches
from tui_probe.probe_model.probe import BLOCK, PHASE, STAY, Level, Save
from tui_probe.ptx.printer import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.reasons import because
from tui_probe.sass import accesses, operations
from tui_probe.sass.accesses import ATOM, ATOMG, ATOMS, RED, access_of, atomic_of
from tui_probe.sass.inline_code import MarkValue
from tui_probe.sass.operations import operation_name
from tui_probe.sass.words import ALWAYS, RZ, WORD_BYTES, is_convergence_test

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tui_probe.probe_model.probe import Position, Probe, ProbePoint
    from tui_probe.reasons import Reason
    from tui_probe.sass.accesses import MemoryAccess
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

PtxFamily = tuple[Instruction, ...]
"""PTX instructions that a SASS instruction may stem from; it counts as the first."""
_PAIRS, _SUMS, _PRODUCTS = ("fma", "mad"), ("add", "sub"), ("mul",)
_HALF_TYPES: Final = ("f16x2", "f16", "bf16x2", "bf16")
_TYPES_OF_PRODUCTS: Final = {
    "half": ("f16", "bf16"),
    "tf32": ("tf32",),
    "double": ("f64",),
    "byte": ("s8", "u8", "s4", "u4"),
    "bit": ("b1",),
    "float8": ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"),
}
_KINDS: Final = {
    "IMMA": "byte", "IGMMA": "byte", "BMMA": "bit", "BGMMA": "bit", "DMMA": "double", "QMMA": "float8",
    "QGMMA": "float8",
}  # fmt: skip
_HMMA_TYPE, _TF32 = (82, 3), 2
_HGMMA_TF32: Final = 58
MATRIX_MOVES: Final = {0x03B: "ldmatrix", 0x044: "stmatrix"}
"""LDSM, STSM."""
_MATRIX_COUNT_FIELD: Final = 72, 2
_MATRIX_COUNTS: Final = ("x1", "x2", "x4")


def _family(opcodes: Iterable[str], *types: str, of: tuple[str, ...] = ()) -> PtxFamily:
    return tuple(Instruction(opcode, (*of, type_), (), MADE_UP) for type_ in types for opcode in opcodes)


ARITHMETIC_FAMILIES: Final[dict[str, PtxFamily]] = {
    "FFMA": _family(_PAIRS, "f32"),
    "FADD": _family(_SUMS, "f32"),
    "FMUL": _family(_PRODUCTS, "f32"),
    "FFMA2": _family(("fma",), "f32x2"),
    "FADD2": _family(_SUMS, "f32x2"),
    "FMUL2": _family(_PRODUCTS, "f32x2"),
    "DFMA": _family(_PAIRS, "f64"),
    "DADD": _family(_SUMS, "f64"),
    "DMUL": _family(_PRODUCTS, "f64"),
    "HFMA2": _family(("fma",), *_HALF_TYPES),
    "HADD2": _family(_SUMS, *_HALF_TYPES),
    "HMUL2": _family(_PRODUCTS, *_HALF_TYPES),
}
"""PTX equivalents by name of the SASS instruction."""
MMA_FAMILIES: Final = {kind: _family(("mma",), *types, of=("sync",)) for kind, types in _TYPES_OF_PRODUCTS.items()}
WGMMA_FAMILIES: Final = {
    kind: _family(("wgmma",), *types, of=("mma_async", "sync"))
    for kind, types in _TYPES_OF_PRODUCTS.items()
    if kind != "double"
}
"""PTX equivalents of warpgroup products by the kind of their operands."""


def arithmetic_family(word: Word, arch: int) -> PtxFamily | None:
    """Return the family of what an instruction computes; None for one that computes nothing of this kind, or only moves
    a value.
    """
    family = ARITHMETIC_FAMILIES.get(operation_name(word, arch))
    return None if word.ra == RZ else family


def product_family(word: Word, *, of_group: bool) -> PtxFamily:
    """A product of matrices, one of ``matrices.OPERATIONS``."""
    name = operations.PRODUCT_NAMES[word.operation]
    if name == "HMMA":
        kind = "tf32" if word.field(*_HMMA_TYPE) == _TF32 else "half"
    elif name == "HGMMA":
        kind = "tf32" if word.field(_HGMMA_TF32, 1) else "half"
    else:
        kind = _KINDS[name]
    return (WGMMA_FAMILIES if of_group else MMA_FAMILIES)[kind]


def matrix_access(word: Word) -> Instruction | None:
    """``LDSM`` and ``STSM``, with how many matrices they move; None for others."""
    opcode, number = MATRIX_MOVES.get(word.operation), word.field(*_MATRIX_COUNT_FIELD)
    if opcode is None:
        return None
    how_many = _MATRIX_COUNTS[number : number + 1]
    return Instruction(opcode, ("sync", "aligned", *how_many, "shared", "b16"), (), MADE_UP)


# PTX equivalents of SASS instructions, by which positions of probes select them.
#
# SASS has less information: a ``wmma.load`` is loads like any other, a ``wmma.mma`` the multiplications of ``mma``.
# What the compiler merged, split or left out counts as it is executed.

_WIDTHS: Final = {1: ("b8",), 2: ("b16",), 4: ("b32",), 8: ("b64",), 16: ("v4", "b32")}
_BULK_COPY: Final = Instruction("cp", ("async", "bulk", "global", "mbarrier"), (), MADE_UP)
"""Stands for all bulk copies: which of them it is, and of how many bytes, is not read from machine code."""
_SHARED_ATOMICS: Final = tuple(Instruction(opcode, ("shared",), (), MADE_UP) for opcode in ("atom", "red"))
_MEMORY_OPCODES: Final = {
    accesses.LD: ("ld", ()),
    accesses.LDG: ("ld", ("global",)),
    accesses.ST: ("st", ()),
    accesses.STG: ("st", ("global",)),
    accesses.LDS: ("ld", ("shared",)),
    accesses.STS: ("st", ("shared",)),
    accesses.LDGSTS: ("cp", ("async", "ca", "shared", "global")),
    **dict.fromkeys(ATOM, ("atom", ())),
    **dict.fromkeys(ATOMG, ("atom", ("global",))),
    **dict.fromkeys(RED, ("red", ("global",))),
    **dict.fromkeys(ATOMS, ("atom", ("shared",))),
}


_BRANCHES: Final = {
    0x147: Instruction("bra", (), (), MADE_UP),
    0x149: Instruction("brx", ("idx",), (), MADE_UP),
    0x158: Instruction("brx", ("idx",), (), MADE_UP),
}
"""BRA, BRX, BRXU. A branch of PTX that the compiler replaced by guards is none; nor is ``BRA.DIV``, which PTX lacks."""
_BRANCH_OPCODES: Final = frozenset(branch.opcode for branch in _BRANCHES.values())
_IDENTIFIABLE: Final = frozenset(
    {"ld", "ldu", "st", "cp", "atom", "red", "mma", "wmma", "wgmma", *MATRIX_MOVES.values()}
    | _BRANCH_OPCODES
    | {instruction.opcode for family in ARITHMETIC_FAMILIES.values() for instruction in family}
)
_MODIFIERS: Final = frozenset(
    {"global", "shared", "local", "const", "param", "async", "bulk", "load", "store", "mma", "mma_async", "sync"}
)
"""Modifiers that SASS shows, of instructions that are not copies; operations are not among them."""
_TYPES: Final = frozenset(
    instruction.modifiers[-1] for family in ARITHMETIC_FAMILIES.values() for instruction in family
)
_FACTORS: Final = frozenset(instruction.modifiers[-1] for family in MMA_FAMILIES.values() for instruction in family)
_IDENTIFIABLE_MODIFIERS: Final = {
    **dict.fromkeys((instruction.opcode for family in ARITHMETIC_FAMILIES.values() for instruction in family), _TYPES),
    **dict.fromkeys(("mma", "wmma", "wgmma"), _MODIFIERS | _FACTORS),
    **dict.fromkeys(MATRIX_MOVES.values(), frozenset({"x1", "x2", "x4"})),
    **dict.fromkeys(_BRANCH_OPCODES, frozenset()),
}
"""Modifiers that SASS shows, by opcode."""
_WMMA: Final = {"load": "ld", "store": "st", "mma": "mma"}
"""SASS equivalents of these modifiers."""
_ALTERNATIVE_OPCODES: Final = {"ldu": {"ld"}, "atom": {"red"}, "red": {"atom"}}
"""Other SASS equivalents: an atomic whose result nothing uses is a reduction, and one without a space none."""
_UNIDENTIFIABLE: Final = tuple(
    Instruction(opcode, modifiers, (), MADE_UP)
    for opcode, modifiers in (
        *((opcode, (space,)) for opcode in ("ld", "st") for space in ("local", "param")),
        ("ld", ("const",)),
        ("st", ("async", "shared::cluster")),
        ("red", ("async", "shared::cluster")),
        *(("cp", ("async", modifier)) for modifier in ("commit_group", "wait_group", "wait_all", "mbarrier")),
        *(("wgmma", (modifier, "sync")) for modifier in ("fence", "commit_group", "wait_group")),
    )
)
"""Instructions of ``_IDENTIFIABLE`` that are not looked for in machine code."""


@dataclass(frozen=True, slots=True)
class SassSite:
    """An instruction at byte offset ``at`` with the places of all points that are for it, and what the marks of their
    snippets stand for.
    """

    at: int
    places: tuple[SnippetSite, ...]
    access: MemoryAccess | None
    phase: SassPhase | None = None
    """The phase that begins here."""

    def sources(self) -> dict[int, MarkValue]:
        """Values of its marks, except the flag's and those of registers that are kept."""
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
    """The instructions and blocks of a kernel that a probe is for.

    Raises UnsupportedKernelError for one that is not known, and for a probe of instructions that are not looked for: a
    count without them would be wrong.
    """
    opcodes = _probe_opcodes(probe)
    identifiable = all(
        _is_identifiable(point, position, opcodes) for point in probe.points for position in point.positions
    )
    if not identifiable or any(point.before is None for point in block_points(probe)) or not _counts_alike(probe):
        raise UnsupportedKernelError(because("needs-instructions", probe=probe.name))
    added: dict[int, dict[str, int]] = {}
    phases, missing = _phase_sites(probe, target)
    sites = [*_matching_sites(probe, target, added), *phases]
    return ProbedParts(sites, probed_blocks(probe, target, added, {site.at for site in sites}), missing)


def excluded_copies(probe: Probe, target: GraftTarget) -> Reason | None:
    """Return the reason why the kernel's bulk copies are not counted, if it has any that the probe is for."""
    is_for_copies = any(point.ptx_only and _is_for(point, _BULK_COPY) for point in probe.points)
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


def _is_identifiable(point: ProbePoint, position: Position, opcodes: set[str]) -> bool:
    """Return whether machine code tells all instructions that a position is for. Those that are others there must be
    among ``opcodes`` as such: a ``wmma.load`` is counted by a probe of ``ld`` only.
    """
    if position.is_kernel or position.is_stay or position.opcode in (BLOCK, PHASE):
        return True
    if position.opcode in _BRANCH_OPCODES and point.guarded:  # in the lanes that branch: which these are, a guard says
        return False
    instead = _ALTERNATIVE_OPCODES.get(position.opcode, set())
    if position.opcode == "wmma":
        instead = {_WMMA[modifier] for modifier in position.modifiers if modifier in _WMMA} or set(_WMMA.values())
    untold = any(matches(position, unidentifiable) for unidentifiable in _UNIDENTIFIABLE)
    if _needs_access(point):
        shared = any(matches(position, atomic) for atomic in _SHARED_ATOMICS)
        untold = untold or shared or position.opcode in MATRIX_MOVES.values()
    if position.opcode != "cp":
        modifiers = _IDENTIFIABLE_MODIFIERS.get(position.opcode, _MODIFIERS)
        untold = untold or not {*position.modifiers, *position.unwanted} - {MERGED} <= modifiers
    return position.opcode in _IDENTIFIABLE and not position.retried and not untold and instead <= opcodes


def _needs_access(point: ProbePoint) -> bool:
    """Return whether a point must know what an instruction accesses."""
    return bool(point.before and point.before.helpers & {"ADDR", "BYTES"})


def _counts_alike(probe: Probe) -> bool:
    """Return whether the probe is for all that an instruction of machine code may have been, or for none of it. Of a
    product of matrices they must be the same points, too: nothing tells a type from others of its kind.
    """
    for family in (*ARITHMETIC_FAMILIES.values(), _SHARED_ATOMICS):
        if len({any(_is_for(point, instruction) for point in probe.points) for instruction in family}) > 1:
            return False
    return all(
        len({_is_for(point, instruction) for instruction in family}) == 1
        for kinds in (MMA_FAMILIES, WGMMA_FAMILIES)
        for family in kinds.values()
        for point in probe.points
    )


def _matching_sites(probe: Probe, target: GraftTarget, added: dict[int, dict[str, int]]) -> Iterator[SassSite]:
    """The instructions that need code of their own. What others add, which is counted by blocks, goes to ``added``."""
    opcodes = _probe_opcodes(probe)
    points_by_form: dict[tuple[str, tuple[str, ...]], list[ProbePoint]] = {}
    bulk = any(_is_for(point, _BULK_COPY) and not point.ptx_only for point in probe.points)
    stays = stay_instructions(target) if STAY in opcodes else {}
    for index, word in enumerate(target.words):
        if word.never_runs or is_padding(target, index):
            continue
        if index in stays:
            yield _stay_site(probe, target, index, stays[index])
            continue
        if bulk and word.operation in accesses.BULK_COPIES:
            raise UnsupportedKernelError(because("graft-bulk", probe=probe.name))
        equivalent, facts, access = _ptx_equivalent(word, target.arch, opcodes)
        if equivalent is None:
            continue
        form = equivalent.opcode, equivalent.modifiers
        if form not in points_by_form:
            points_by_form[form] = [point for point in probe.points if _is_for(point, equivalent)]
        points = points_by_form[form]
        if BLOCK in opcodes and word.is_unconditional:
            points = [point for point in points if not _only_adds(point, facts, added.setdefault(index, {}))]
        if points:
            own = replace(equivalent)  # records of sites are numbered by instruction, so each needs one of its own
            places = tuple(SnippetSite(point, facts, own) for point in points)
            yield SassSite(index * WORD_BYTES, places, access)


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
        facts = facts if access is None else _access_facts(access)
        stay = replace(stay, modifiers=stay.modifiers if access else ("other",))
    points = [point for point in probe.points if _is_for(point, stay)]
    own = replace(stay)
    return SassSite(index * WORD_BYTES, tuple(SnippetSite(point, facts, own) for point in points), access)


def _only_adds(point: ProbePoint, facts: InstructionFacts, sums: dict[str, int]) -> bool:
    """Return whether a point only adds what is known beforehand, which then goes to ``sums``."""
    size = None if facts.predicated or facts.shortened else facts.bytes
    values = {"BYTES": size, "MULTIPLY_ADDS": facts.multiply_adds}
    sums_here = additions(point.before, values) if point.before and point.after is None else None
    for register, number in (sums_here or {}).items():
        sums[register] = sums.get(register, 0) + number
    return sums_here is not None


def _is_for(point: ProbePoint, instruction: Instruction) -> bool:
    at_instructions = (
        position for position in point.positions if not (position.is_kernel or position.is_block or position.is_source)
    )
    return any(matches(position, instruction) for position in at_instructions)


class _PtxEquivalent(NamedTuple):
    """A PTX instruction that a SASS instruction may have been, None without one, with its facts and its access."""

    instruction: Instruction | None = None
    facts: InstructionFacts = InstructionFacts()
    access: MemoryAccess | None = None


def _ptx_equivalent(word: Word, arch: int, opcodes: set[str]) -> _PtxEquivalent:
    """Return the PTX equivalent of an instruction, if it is one of ``opcodes``."""
    if word.operation in _MEMORY_OPCODES:
        return _memory_equivalent(word, arch, opcodes)
    if word.operation in operations.PRODUCT_OPERATIONS and opcodes & {"mma", "wgmma"}:
        share = operations.matrix_product(word, arch)
        product = product_family(word, of_group=share.of_group)[0]
        return _PtxEquivalent(product, InstructionFacts(multiply_adds=share.share))
    if is_convergence_test(word):
        return _PtxEquivalent()
    if word.operation in _BRANCHES:
        branch = _BRANCHES[word.operation]
        return _PtxEquivalent(branch if branch.opcode in opcodes else None)
    if word.operation in MATRIX_MOVES:
        matrix = matrix_access(word)
        return _PtxEquivalent(matrix if matrix and matrix.opcode in opcodes else None)
    family = arithmetic_family(word, arch)
    return _PtxEquivalent(family[0] if family and family[0].opcode in opcodes else None)


def _memory_equivalent(word: Word, arch: int, opcodes: set[str]) -> _PtxEquivalent:
    opcode, modifiers = _MEMORY_OPCODES[word.operation]
    if opcode not in opcodes:
        return _PtxEquivalent()
    if word.operation in ATOMS:  # of these nothing is known but that they are there
        return _PtxEquivalent(_SHARED_ATOMICS[0])
    access = access_of(word, arch) or atomic_of(word, arch)
    if access is None:
        return _PtxEquivalent()
    types = () if opcode == "cp" else _WIDTHS[access.bytes]
    return _PtxEquivalent(Instruction(opcode, (*modifiers, *types), (), MADE_UP), _access_facts(access), access)


def _access_facts(access: MemoryAccess) -> InstructionFacts:
    return InstructionFacts(
        bytes=access.bytes,
        wide=access.address.wide,
        uniform=access.address.uniform is not None,
        predicated=access.reads != ALWAYS,
        shortened=access.shortened,
        shared=access.address.shared,
        shift=access.address.shift,
    )

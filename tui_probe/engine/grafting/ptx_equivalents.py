"""Find the PTX equivalent of a SASS instruction, and decide which probe positions SASS can identify.

One SASS instruction stands for several of PTX: an ``FFMA`` for ``fma.f32`` and ``mad.f32``. SASS has less information:
a ``wmma.load`` consists of ordinary loads, a ``wmma.mma`` of the multiplications of ``mma``. Instructions that the
compiler merged, split or removed count as they are executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.grafting.site_values import InstructionFacts
from tui_probe.probe_model.positions import BLOCK, MERGED, PHASE, matches
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.sass import accesses, operations
from tui_probe.sass.accesses import ATOM, ATOMG, ATOMS, RED, access_of, atomic_of
from tui_probe.sass.operations import operation_name
from tui_probe.sass.words import PT, RZ, is_convergence_test

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.probe_model.positions import Position
    from tui_probe.probe_model.probe import ProbePoint
    from tui_probe.sass.accesses import MemoryAccess
    from tui_probe.sass.bulk_copies import BulkCopy
    from tui_probe.sass.words import Word

PtxFamily = tuple[Instruction, ...]
"""PTX instructions that the compiler may have translated to one SASS instruction, which counts as the first."""
_FUSED, _SUMS, _PRODUCTS = ("fma", "mad"), ("add", "sub"), ("mul",)
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
_HMMA_TYPE: Final = 82, 3
"""The operand type of an ``HMMA``: first bit, width in bits."""
_TF32: Final = 2
_HGMMA_TF32: Final = 58
"""The bit of an ``HGMMA`` that is set for tf32."""
MATRIX_MOVES: Final = {0x03B: "ldmatrix", 0x044: "stmatrix"}
"""LDSM, STSM."""
_MATRIX_COUNT_FIELD: Final = 72, 2
"""The number of matrices that an ``LDSM`` or ``STSM`` moves, as an index of ``_MATRIX_COUNTS``: first bit, width."""
_MATRIX_COUNTS: Final = ("x1", "x2", "x4")


def _family(opcodes: Iterable[str], *types: str, modifiers: tuple[str, ...] = ()) -> PtxFamily:
    return tuple(Instruction(opcode, (*modifiers, type_), (), MADE_UP) for type_ in types for opcode in opcodes)


ARITHMETIC_FAMILIES: Final[dict[str, PtxFamily]] = {
    "FFMA": _family(_FUSED, "f32"),
    "FADD": _family(_SUMS, "f32"),
    "FMUL": _family(_PRODUCTS, "f32"),
    "FFMA2": _family(("fma",), "f32x2"),
    "FADD2": _family(_SUMS, "f32x2"),
    "FMUL2": _family(_PRODUCTS, "f32x2"),
    "DFMA": _family(_FUSED, "f64"),
    "DADD": _family(_SUMS, "f64"),
    "DMUL": _family(_PRODUCTS, "f64"),
    "HFMA2": _family(("fma",), *_HALF_TYPES),
    "HADD2": _family(_SUMS, *_HALF_TYPES),
    "HMUL2": _family(_PRODUCTS, *_HALF_TYPES),
}
"""PTX equivalents by name of the SASS instruction."""
MMA_FAMILIES: Final = {
    kind: _family(("mma",), *types, modifiers=("sync",)) for kind, types in _TYPES_OF_PRODUCTS.items()
}
WGMMA_FAMILIES: Final = {
    kind: _family(("wgmma",), *types, modifiers=("mma_async", "sync"))
    for kind, types in _TYPES_OF_PRODUCTS.items()
    if kind != "double"
}
"""PTX equivalents of warpgroup products by the kind of their operands."""


def arithmetic_family(word: Word, arch: int) -> PtxFamily | None:
    """Return the family of an arithmetic instruction; None for another one, and for one that only moves a value."""
    family = ARITHMETIC_FAMILIES.get(operation_name(word, arch))
    return None if word.ra == RZ else family


def product_family(word: Word, *, of_group: bool) -> PtxFamily:
    """Return the family of a matrix product, one of ``operations.PRODUCT_OPERATIONS``."""
    name = operations.PRODUCT_NAMES[word.operation]
    if name == "HMMA":
        kind = "tf32" if word.field(*_HMMA_TYPE) == _TF32 else "half"
    elif name == "HGMMA":
        kind = "tf32" if word.field(_HGMMA_TF32, 1) else "half"
    else:
        kind = _KINDS[name]
    return (WGMMA_FAMILIES if of_group else MMA_FAMILIES)[kind]


def matrix_access(word: Word) -> Instruction | None:
    """Return the equivalent of an ``LDSM`` or ``STSM``, with the number of matrices; None for other instructions."""
    opcode, number = MATRIX_MOVES.get(word.operation), word.field(*_MATRIX_COUNT_FIELD)
    if opcode is None:
        return None
    count_modifier = _MATRIX_COUNTS[number : number + 1]
    return Instruction(opcode, ("sync", "aligned", *count_modifier, "shared", "b16"), (), MADE_UP)


_WIDTHS: Final = {1: ("b8",), 2: ("b16",), 4: ("b32",), 8: ("b64",), 16: ("v4", "b32")}
SHARED_ATOMICS: Final = tuple(Instruction(opcode, ("shared",), (), MADE_UP) for opcode in ("atom", "red"))
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
"""BRA, BRX, BRXU. Excluded: PTX branches that the compiler replaced by guards, and ``BRA.DIV``, which PTX lacks."""
_BRANCH_OPCODES: Final = frozenset(branch.opcode for branch in _BRANCHES.values())
_IDENTIFIABLE: Final = frozenset(
    {"ld", "ldu", "st", "cp", "atom", "red", "mma", "wmma", "wgmma", *MATRIX_MOVES.values()}
    | _BRANCH_OPCODES
    | {instruction.opcode for family in ARITHMETIC_FAMILIES.values() for instruction in family}
)
_MODIFIERS: Final = frozenset(
    {"global", "shared", "local", "const", "param", "async", "bulk", "load", "store", "mma", "mma_async", "sync"}
)
"""Modifiers that SASS shows for most opcodes. The operation of an atomic, such as ``add``, is not one of them."""
_TYPES: Final = frozenset(
    instruction.modifiers[-1] for family in ARITHMETIC_FAMILIES.values() for instruction in family
)
_FACTORS: Final = frozenset(instruction.modifiers[-1] for family in MMA_FAMILIES.values() for instruction in family)
_IDENTIFIABLE_MODIFIERS: Final = {
    **dict.fromkeys((instruction.opcode for family in ARITHMETIC_FAMILIES.values() for instruction in family), _TYPES),
    **dict.fromkeys(("mma", "wmma", "wgmma"), _MODIFIERS | _FACTORS),
    **dict.fromkeys(MATRIX_MOVES.values(), frozenset(_MATRIX_COUNTS)),
    **dict.fromkeys(_BRANCH_OPCODES, frozenset()),
}
"""Modifiers that SASS shows, by opcode."""
_WMMA: Final = {"load": "ld", "store": "st", "mma": "mma"}
"""Opcodes that SASS shows for ``wmma`` with these modifiers."""
_ALTERNATIVE_OPCODES: Final = {"ldu": {"ld"}, "atom": {"red"}, "red": {"atom"}}
"""Other opcodes that SASS may show, such as a reduction for an atomic whose result is unused, and the reverse."""
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
"""Instructions of ``_IDENTIFIABLE`` opcodes that are not searched in SASS."""


def bulk_equivalent(copy: BulkCopy) -> Instruction:
    """Return the PTX equivalent of a bulk copy."""
    end = "mbarrier" if copy.is_load else "bulk_group"
    modifiers = (
        ("prefetch", copy.is_prefetch),
        ("tensor", copy.size is None),
        (f"{copy.dimensions}d", copy.dimensions > 0),
        ("global", True),
        (end, not copy.is_prefetch),
    )
    return Instruction("cp", ("async", "bulk", *(name for name, is_there in modifiers if is_there)), (), MADE_UP)


class PtxEquivalent(NamedTuple):
    """The PTX equivalent of a SASS instruction, or None, with the facts for its snippet and its memory access."""

    instruction: Instruction | None = None
    facts: InstructionFacts = InstructionFacts()
    access: MemoryAccess | None = None


def ptx_equivalent(word: Word, arch: int, opcodes: set[str]) -> PtxEquivalent:
    """Return the PTX equivalent of an instruction, if it is one of ``opcodes``."""
    if word.operation in _MEMORY_OPCODES:
        return _memory_equivalent(word, arch, opcodes)
    if word.operation in operations.PRODUCT_OPERATIONS and opcodes & {"mma", "wgmma"}:
        share = operations.matrix_product(word, arch)
        product = product_family(word, of_group=share.is_of_warpgroup)[0]
        return PtxEquivalent(product, InstructionFacts(multiply_adds=share.share))
    if is_convergence_test(word):
        return PtxEquivalent()
    if word.operation in _BRANCHES:
        branch = _BRANCHES[word.operation]
        return PtxEquivalent(branch if branch.opcode in opcodes else None)
    if word.operation in MATRIX_MOVES:
        matrix = matrix_access(word)
        return PtxEquivalent(matrix if matrix and matrix.opcode in opcodes else None)
    family = arithmetic_family(word, arch)
    return PtxEquivalent(family[0] if family and family[0].opcode in opcodes else None)


def _memory_equivalent(word: Word, arch: int, opcodes: set[str]) -> PtxEquivalent:
    opcode, modifiers = _MEMORY_OPCODES[word.operation]
    if opcode not in opcodes:
        return PtxEquivalent()
    if word.operation in ATOMS:  # their addresses and sizes are not decoded
        return PtxEquivalent(SHARED_ATOMICS[0])
    access = access_of(word, arch) or atomic_of(word, arch)
    if access is None:
        return PtxEquivalent()
    types = () if opcode == "cp" else _WIDTHS[access.bytes]
    return PtxEquivalent(Instruction(opcode, (*modifiers, *types), (), MADE_UP), access_facts(access), access)


def access_facts(access: MemoryAccess) -> InstructionFacts:
    """Return the facts about a memory access that its snippet needs."""
    return InstructionFacts(
        bytes=access.bytes,
        is_wide=access.address.is_wide,
        is_uniform=access.address.uniform is not None,
        is_predicated=access.read_predicate != PT,
        is_shortened=access.is_shortened,
        is_shared=access.address.is_shared,
        shift=access.address.shift,
    )


def is_identifiable(point: ProbePoint, position: Position, opcodes: set[str]) -> bool:
    """Return whether SASS identifies all instructions that a position is for.

    Instructions that become others in SASS must be in ``opcodes``, those of the probe, under their SASS equivalent: a
    ``wmma.load`` is counted only by a probe of ``ld``.
    """
    if position.is_kernel or position.is_stay or position.opcode in (BLOCK, PHASE):
        return True
    if position.opcode in _BRANCH_OPCODES and point.guarded:
        return False  # the lanes that branch depend on a guard, which the snippet does not see
    alternatives = _ALTERNATIVE_OPCODES.get(position.opcode, set())
    if position.opcode == "wmma":
        alternatives = {_WMMA[modifier] for modifier in position.modifiers if modifier in _WMMA} or set(_WMMA.values())
    unidentifiable = any(matches(position, instruction) for instruction in _UNIDENTIFIABLE)
    if _needs_access(point):
        is_shared_atomic = any(matches(position, atomic) for atomic in SHARED_ATOMICS)
        unidentifiable = unidentifiable or is_shared_atomic or position.opcode in MATRIX_MOVES.values()
    if position.opcode != "cp":
        modifiers = _IDENTIFIABLE_MODIFIERS.get(position.opcode, _MODIFIERS)
        unidentifiable = unidentifiable or not {*position.modifiers, *position.unwanted} - {MERGED} <= modifiers
    return position.opcode in _IDENTIFIABLE and not position.retried and not unidentifiable and alternatives <= opcodes


def _needs_access(point: ProbePoint) -> bool:
    """Return whether a point must know what an instruction accesses."""
    return bool(point.before and point.before.helpers & {"ADDR", "BYTES"})

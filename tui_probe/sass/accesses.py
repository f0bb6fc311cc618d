"""Memory accesses and atomics of SASS: addresses, sizes and predicates, from instruction words; spills by source line.

Of a global or generic access: Ra holds the address, 64 bits in a pair (bit 90) or 32 bits that are extended by zeros;
24 signed bits from bit 40 on are added; and, where bit 91 is set and bit 76 is not, a pair of uniform registers. With
bit 76 that pair holds a descriptor, which says nothing of the address. Sizes from bit 73 on: 1, 1, 2, 2, 4, 8, 16.
An access without bit 91 names no uniform register: on sm_75, which has no descriptors, and later of global memory in
form 1, of a generic address where it is loaded in form 4 and stored in form 1. Its bit 72 (``.E``) says that Ra is a
pair; what it adds to a generic address has 32 bits, from bit 32 on.

Of a load or store of shared memory Ra holds an offset of 32 bits, times 1, 4, 8 or 16 by bits 79:78; with bit 91 a
single uniform register is added.

Of a copy to shared memory the 12 bits from bit 32 on are added to the address in global memory, those above them to
that in shared memory; bits 90:87 are the predicate of the lanes that read. Without a descriptor, form 6 adds the
uniform register to the address of shared memory, form 7 to that of global memory.

ptxas addresses the stack by R1 and a number. A kernel without arrays in local memory accesses it there for spills only;
ptxas reports how many bytes it spilled.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.uniform_registers import uniform_bits
from tui_probe.sass.words import PT, RZ, STACK_POINTER, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

LD: Final = 0x180
LDG: Final = 0x181
ST: Final = 0x185
STG: Final = 0x186
LDS: Final = 0x184
STS: Final = 0x188
LDGSTS: Final = 0x1AE
_EXTENDED: Final = 72
"""Bit of ``.E``: addresses have 64 bits."""
_PAIR_ADDRESS: Final = 90
"""Bit that is set where Ra is a pair, in an access with a uniform register."""
_UNIFORM: Final = 91
"""Bit that is set where an access names uniform registers."""
_DESCRIPTOR: Final = 76
"""Bit that is set where these are a descriptor."""
_SIZE_AT, _SIZE_BITS = 73, 3
_SIZES: Final[tuple[int, ...]] = (1, 1, 2, 2, 4, 8, 16)
"""Bytes by value of the field: U8, S8, U16, S16, 32, 64, 128 bits."""
_COPY_SIZE_AT, _COPY_SIZE_BITS = 74, 2
_COPY_SIZES: Final = (4, 8, 16)
_NEW_COPIES_FROM: Final = 100
_OFFSET_AT, _OFFSET_BITS = 40, 24
_LONG_OFFSET_AT, _LONG_OFFSET_BITS = 32, 32
_COPY_OFFSET_AT, _COPY_OFFSET_BITS = 32, 12
_COPY_PREDICATE: Final = 87
_COPY_TO_UNIFORM, _COPY_FROM_UNIFORM = 6, 7
"""Forms of a copy without a descriptor: its uniform register is for shared memory, or for global memory."""
_PLAIN_FORMS: Final = {LD: 4, LDG: 1, ST: 1, STG: 1}
"""Forms without a uniform register."""
_ZERO_FILL: Final = 82
_UNIFORM_AT: Final = {LD: 32, LDG: 32, LDS: 32, ST: 64, STG: 64, STS: 64, LDGSTS: 64}
_SHARED_OPERATIONS: Final = frozenset({LDS, STS})
_SHARED_FORMS: Final = {LDS: frozenset({4}), STS: frozenset({1, 4})}
_SCALE_AT, _SCALE_BITS = 78, 2
_SCALES: Final = (0, 2, 3, 4)
_DESCRIPTORS_FROM: Final = 80
"""The first architecture whose accesses of global memory have a descriptor."""


@dataclass(frozen=True, slots=True)
class Address:
    """``register`` (a pair if ``is_wide``; RZ: none) + ``uniform`` (a pair) + ``offset``.

    One in ``is_shared`` memory has 32 bits: ``register`` << ``shift`` + ``uniform`` + ``offset``.
    """

    register: int
    is_wide: bool
    uniform: int | None
    offset: int
    is_shared: bool = False
    shift: int = 0


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """An access of global or shared memory, or of a generic address. ``bytes`` are those of one lane.

    ``read_predicate`` is the predicate of the lanes of a copy that read, with bit 3 set where it is negated; the others
    fill with zeros. ``is_shortened``: the low bits of the address are the number of bytes that are not read.
    """

    operation: int
    address: Address
    bytes: int
    read_predicate: int = PT
    is_shortened: bool = False


def access_of(word: Word, arch: int) -> MemoryAccess | None:
    """Return the access of an instruction to global or shared memory or a generic address; None for others.

    Atomics and loads of matrices are among the others. Raises UnsupportedKernelError for an access whose address or
    size is unknown.
    """
    operation = word.operation
    if operation not in _UNIFORM_AT:
        return None
    size = _access_bytes(word, arch)
    if operation in _SHARED_OPERATIONS:
        if size is None or word.form not in _SHARED_FORMS[operation]:
            raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
        return MemoryAccess(operation, _shared_address(word, arch), size)
    if size is None or not _is_known_access(word, arch):
        raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
    address = _address(word, arch)
    if operation != LDGSTS:
        return MemoryAccess(operation, address, size)
    read_predicate = word.field(_COPY_PREDICATE, 4)
    return MemoryAccess(operation, address, size, read_predicate, bool(word.field(_ZERO_FILL, 1)))


def _is_known_access(word: Word, arch: int) -> bool:
    """Return whether the address of an access of global memory, or of a generic one, is known."""
    if word.operation == LDGSTS:
        has_known_form = word.form == _COPY_FROM_UNIFORM or _adds_to_shared(word, arch)
        return bool(word.field(_UNIFORM, 1)) and bool(word.field(_DESCRIPTOR, 1) or has_known_form)
    is_plain = word.form == _PLAIN_FORMS[word.operation]
    return bool(word.field(_UNIFORM, 1)) or arch < _DESCRIPTORS_FROM or is_plain


def _adds_to_shared(word: Word, arch: int) -> bool:
    """Return whether the uniform register of a copy without a descriptor is part of the address of shared memory."""
    return word.operation == LDGSTS and word.form == _COPY_TO_UNIFORM and arch < _NEW_COPIES_FROM


def _address(word: Word, arch: int) -> Address:
    bit, width = (_COPY_OFFSET_AT, _COPY_OFFSET_BITS) if word.operation == LDGSTS else (_OFFSET_AT, _OFFSET_BITS)
    if not word.field(_UNIFORM, 1):
        bit, width = (_LONG_OFFSET_AT, _LONG_OFFSET_BITS) if word.operation in (LD, ST) else (bit, width)
        return Address(word.ra, bool(word.field(_EXTENDED, 1)), None, _offset(word, bit, width))
    is_elsewhere = word.field(_DESCRIPTOR, 1) or _adds_to_shared(word, arch)
    uniform = None if is_elsewhere else _uniform(word, arch)
    is_wide = word.operation == LDGSTS or bool(word.field(_PAIR_ADDRESS, 1))
    return Address(word.ra, is_wide, uniform, _offset(word, bit, width))


def _shared_address(word: Word, arch: int) -> Address:
    uniform = _uniform(word, arch) if word.field(_UNIFORM, 1) else None
    shift = _SCALES[word.field(_SCALE_AT, _SCALE_BITS)]
    return Address(word.ra, False, uniform, _offset(word, _OFFSET_AT, _OFFSET_BITS), is_shared=True, shift=shift)


def _offset(word: Word, bit: int, width: int) -> int:
    """Return the signed number in a field."""
    offset = word.field(bit, width)
    return offset - (offset >> width - 1 << width)


def _uniform(word: Word, arch: int) -> int | None:
    """Return the number of the uniform register that is added, None for the one that is always 0."""
    return _uniform_at(word, _UNIFORM_AT[word.operation], arch)


def _uniform_at(word: Word, bit: int, arch: int) -> int | None:
    """Return the number in a field of a uniform register, None for the one that is always 0."""
    bits = uniform_bits(arch)
    number = word.field(bit, bits)
    return None if number == (1 << bits) - 1 else number


def _access_bytes(word: Word, arch: int) -> int | None:
    bit, width, sizes = _SIZE_AT, _SIZE_BITS, _SIZES
    if word.operation == LDGSTS and arch >= _NEW_COPIES_FROM:
        bit, width, sizes = _COPY_SIZE_AT, _COPY_SIZE_BITS, _COPY_SIZES
    number = word.field(bit, width)
    return sizes[number] if number < len(sizes) else None


def register_pair(register: int) -> tuple[int, int]:
    """Return the two registers of a 64-bit value; RZ stands for both of none."""
    return (RZ, RZ) if register == RZ else (register, register + 1)


# Atomics and reductions on global memory and generic addresses.
#
# Ra holds the address, 64 bits in a pair; signed bits from bit 40 on are added, 24 of them, or 23 in an atomic of
# sm_100 and later. A pair of uniform registers from bit 64 on is a descriptor, which says nothing of the address, or
# is added:
#
#     operation                              descriptor where this bit is set
#     RED and REDG                           71, from sm_100 on 81
#     ATOM and ATOMG                         71, from sm_100 on 76, of floating-point numbers 90
#
# Compare-and-swap has neither, nor has what lacks bit 91: on sm_75, which has no descriptors, and up to sm_90 atomics
# in form 1 and reductions in form 4. Types from bit 73 on: four bits up to sm_89, and of floating-point numbers later;
# else three.

ATOM: Final = frozenset({0x18A, 0x18B, 0x1A2})
"""Atomics on generic addresses: integers (up to sm_89 all), compare-and-swap, floating-point numbers."""
ATOMG: Final = frozenset({0x1A8, 0x1A9, 0x1A3})
"""Atomics on global memory: integers (up to sm_89 all), compare-and-swap, floating-point numbers."""
RED: Final = frozenset({0x18E, 0x1A6})
"""Reductions, without a result, on global memory: integers (up to sm_89 all), floating-point numbers."""
ATOMS: Final = frozenset({0x18C, 0x18D})
"""Atomics on shared memory, with or without a result; compare-and-swap is the second."""

_SWAP_OPERATIONS: Final = frozenset({0x18B, 0x1A9})
_FLOAT_OPERATIONS: Final = frozenset({0x1A2, 0x1A3, 0x1A6})
_PLAIN_ATOMIC_FORM, _PLAIN_REDUCTION_FORM = 1, 4
"""Forms without a uniform register."""
_ATOMIC_UNIFORM_AT: Final = 64
_ATOMIC_OFFSET_BITS, _ATOMIC_OFFSET_BITS_FROM_100 = 24, 23
_TYPE_AT: Final = 73
_PAIR_OF_ATOMIC, _PAIR_OF_ATOMIC_FROM_100, _PAIR_OF_REDUCTION = 70, 63, 90
"""Bits that are set where Ra is a pair."""
_HOPPER: Final = 90
_BLACKWELL: Final = 100
_INTEGER_BYTES: Final[Mapping[int, int]] = {0: 4, 1: 4, 2: 8, 3: 8, 4: 16}
_SWAP_BYTES: Final[Mapping[int, int]] = {0: 4, 1: 4, 2: 8, 4: 16}
_REAL_BYTES: Final[Mapping[int, int]] = {
    0: 4, 1: 8, 2: 16, 3: 4, 4: 8, 5: 16, 9: 4, 10: 8, 11: 16, 12: 4, 13: 8, 14: 16, 15: 8,
}  # fmt: skip
_TYPE_BYTES_BEFORE_SM90: Final[Mapping[int, int]] = {0: 4, 1: 4, 2: 8, 3: 4, 4: 4, 5: 8, 6: 8}
"""Types up to sm_89: integers of 32 and 64 bits, f32, f16x2, s64, f64."""


def atomic_of(word: Word, arch: int) -> MemoryAccess | None:
    """Return the access of an atomic or a reduction; None for any other instruction, those of shared memory among them.

    Raises UnsupportedKernelError for one whose address or type is not known.
    """
    if word.operation not in ATOM | ATOMG | RED:
        return None
    size = _atomic_bytes(word, arch)
    if size is None or not _is_known_form(word, arch):
        raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
    is_short = arch >= _BLACKWELL and word.operation not in RED | _SWAP_OPERATIONS
    width = _ATOMIC_OFFSET_BITS_FROM_100 if is_short else _ATOMIC_OFFSET_BITS
    address = Address(word.ra, True, _added_uniform(word, arch), _offset(word, _OFFSET_AT, width))
    return MemoryAccess(word.operation, address, size)


def _is_known_form(word: Word, arch: int) -> bool:
    """Return whether Ra is a pair, in a form whose uniform registers are known."""
    is_reduction, has_uniform = word.operation in RED, bool(word.field(_UNIFORM, 1))
    if not word.field(_EXTENDED, 1):
        return False
    if word.operation in _SWAP_OPERATIONS:
        return not has_uniform
    if not has_uniform:
        plain_form = _PLAIN_REDUCTION_FORM if is_reduction else _PLAIN_ATOMIC_FORM
        return arch < _DESCRIPTORS_FROM or (arch < _BLACKWELL and word.form == plain_form)
    if is_reduction:
        return bool(word.field(_PAIR_OF_REDUCTION, 1))
    return bool(word.field(_PAIR_OF_ATOMIC_FROM_100 if arch >= _BLACKWELL else _PAIR_OF_ATOMIC, 1))


def _added_uniform(word: Word, arch: int) -> int | None:
    """Return the first uniform register that is added; None for none, or for the one that is always 0."""
    if not word.field(_UNIFORM, 1) or word.field(_descriptor_field(word.operation, arch), 1):
        return None
    return _uniform_at(word, _ATOMIC_UNIFORM_AT, arch)


def _descriptor_field(operation: int, arch: int) -> int:
    """Return the bit that is set where the uniform registers are a descriptor: see the table above."""
    if arch < _BLACKWELL:
        return 71
    if operation in RED:
        return 81
    return 90 if operation in _FLOAT_OPERATIONS else 76


def _atomic_bytes(word: Word, arch: int) -> int | None:
    if arch < _HOPPER:
        return _TYPE_BYTES_BEFORE_SM90.get(word.field(_TYPE_AT, 4))
    if word.operation in _FLOAT_OPERATIONS:
        return _REAL_BYTES.get(word.field(_TYPE_AT, 4))
    types = _SWAP_BYTES if word.operation in _SWAP_OPERATIONS else _INTEGER_BYTES
    return types.get(word.field(_TYPE_AT, 3))


_LDL, _STL = 0x183, 0x187
_STACK_SIZES: Final = (*_SIZES, 16)
"""Bytes by value of the field of ``_SIZES``; the last value is that of 128 bits, too."""
_ITERATIONS: Final = 8
"""Executions of a loop that rank lines, where nothing counted them."""


@dataclass(frozen=True, slots=True)
class StackAccess:
    """A load or store of the stack, in ``depth`` loops."""

    index: int
    is_load: bool
    bytes: int
    depth: int

    @property
    def offset(self) -> int:
        """Byte offset in the kernel's code."""
        return self.index * WORD_BYTES


@dataclass(frozen=True, slots=True)
class SpillLine:
    """Accesses of the stack at a source line; ``place`` is None where it is unknown. ``bytes`` are those of a thread,
    each instruction once; ``depth`` is that of the innermost loop.
    """

    place: tuple[str, int] | None
    loads: int
    stores: int
    bytes: int
    depth: int
    offsets: tuple[int, ...]


def stack_accesses(target: GraftTarget, graph: FlowGraph | None = None) -> list[StackAccess]:
    """Return the loads and stores at R1 and a number that the entry reaches, in order of the code.

    Raises UnsupportedKernelError for a branch through a register without a table of targets.
    """
    graph = graph or FlowGraph.from_target(target)
    accesses = []
    for number in sorted(graph.dominators):
        for index in graph.blocks[number]:
            word = target.words[index]
            if word.operation in (_LDL, _STL) and word.ra == STACK_POINTER:
                size = _STACK_SIZES[word.field(_SIZE_AT, _SIZE_BITS)]
                accesses.append(StackAccess(index, word.operation == _LDL, size, graph.depths[number]))
    return sorted(accesses, key=lambda access: access.index)


def spills_by_line(accesses: Iterable[StackAccess], lines: Mapping[int, tuple[str, int]]) -> list[SpillLine]:
    """Add accesses up by source line, those first that move most bytes; loops count several times."""
    groups: dict[tuple[str, int] | None, list[StackAccess]] = defaultdict(list)
    for access in accesses:
        groups[lines.get(access.offset)].append(access)
    ranked_groups = sorted(groups.items(), key=lambda group: -sum(map(_weight, group[1])))
    return [_spill_line(place, group) for place, group in ranked_groups]


def _weight(access: StackAccess) -> int:
    return access.bytes * int(_ITERATIONS**access.depth)


def _spill_line(place: tuple[str, int] | None, group: list[StackAccess]) -> SpillLine:
    loads = sum(access.is_load for access in group)
    return SpillLine(
        place,
        loads,
        len(group) - loads,
        sum(access.bytes for access in group),
        max(access.depth for access in group),
        tuple(access.offset for access in group),
    )

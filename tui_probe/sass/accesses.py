"""Memory accesses and atomics of SASS: addresses, sizes and predicates, from instruction words, and the kernel
parameters that addresses come from.

Of a global or generic access: Ra holds the address, 64 bits in a pair (bit 90) or 32 bits that are extended by zeros;
24 signed bits from bit 40 on are added; and, where bit 91 is set and bit 76 is not, a pair of uniform registers. With
bit 76 that pair holds a descriptor, which says nothing of the address. Sizes from bit 73 on: 1, 1, 2, 2, 4, 8, 16.
An access without bit 91 names no uniform register: on sm_75, which has no descriptors, and later of global memory in
form 1. Its bit 72 (``.E``) says that Ra is a pair; what it adds to a generic address has 32 bits, from bit 32 on.

Of a load or store of shared memory Ra holds an offset of 32 bits, times 1, 4, 8 or 16 by bits 79:78; with bit 91 a
single uniform register is added.

Of a copy to shared memory the 12 bits from bit 32 on are added to the address in global memory, those above them to
that in shared memory; bits 90:87 are the predicate of the lanes that read. Its forms with a uniform register in the
address of shared memory are known with a descriptor only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.register_room import operands_of
from tui_probe.sass.words import ALWAYS, IMMEDIATE, RZ, uniform_bits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tui_probe.sass.flow import FlowGraph
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
_WIDE: Final = 90
_UNIFORM: Final = 91
_DESCRIPTOR: Final = 76
_SIZE_AT, _SIZE_BITS = 73, 3
_SIZES: Final[tuple[int, ...]] = (1, 1, 2, 2, 4, 8, 16)
_COPY_SIZE_AT, _COPY_SIZE_BITS = 74, 2
_COPY_SIZES: Final = (4, 8, 16)
_NEW_COPIES_FROM: Final = 100
_OFFSET_AT, _OFFSET_BITS = 40, 24
_LONG_OFFSET_AT, _LONG_OFFSET_BITS = 32, 32
_COPY_OFFSET_AT, _COPY_OFFSET_BITS = 32, 12
_COPY_PREDICATE: Final = 87
_COPY_FORM, _PLAIN_FORM = 7, 1
"""Forms of a copy whose only uniform register is for global memory, and of a global access without one."""
_ZERO_FILL: Final = 82
_UNIFORM_AT: Final = {LD: 32, LDG: 32, LDS: 32, ST: 64, STG: 64, STS: 64, LDGSTS: 64}
_SHARED: Final = frozenset({LDS, STS})
_SHARED_FORMS: Final = {LDS: frozenset({4}), STS: frozenset({1, 4})}
_SCALE_AT, _SCALE_BITS = 78, 2
_SCALES: Final = (0, 2, 3, 4)
_DESCRIPTORS_FROM: Final = 80
"""The first architecture whose accesses of global memory have a descriptor."""
_WIDE_FIELDS_FROM: Final = 100
"""The first architecture whose fields of uniform registers have eight bits instead of six."""


@dataclass(frozen=True, slots=True)
class Address:
    """``register`` (a pair if ``wide``; RZ: none) + ``uniform`` (a pair) + ``offset``.

    One in ``shared`` memory has 32 bits: ``register`` << ``shift`` + ``uniform`` + ``offset``.
    """

    register: int
    wide: bool
    uniform: int | None
    offset: int
    shared: bool = False
    shift: int = 0


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """An access of global or shared memory, or of a generic address. ``bytes`` are those of one lane.

    ``reads`` is the predicate, with bit 3 set where it is negated, of the lanes of a copy that read; the others fill
    with zeros. ``shortened``: the low bits of the address say how many of the bytes are not read.
    """

    operation: int
    address: Address
    bytes: int
    reads: int = ALWAYS
    shortened: bool = False


def access_of(word: Word, arch: int) -> MemoryAccess | None:
    """The access of an instruction; None for one that accesses neither global or shared memory nor generic addresses.

    Atomics and loads of matrices are not among them. Raises UnsupportedKernelError for one whose address or size is
    not known.
    """
    operation = word.operation
    if operation not in _UNIFORM_AT:
        return None
    size = _access_bytes(word, arch)
    if operation in _SHARED:
        if size is None or word.form not in _SHARED_FORMS[operation]:
            raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
        return MemoryAccess(operation, _shared_address(word, arch), size)
    if size is None or not _is_known_access(word, arch):
        raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
    address = _address(word, arch)
    if operation != LDGSTS:
        return MemoryAccess(operation, address, size)
    reads = word.field(_COPY_PREDICATE, 4)
    return MemoryAccess(operation, address, size, reads, bool(word.field(_ZERO_FILL, 1)))


def _is_known_access(word: Word, arch: int) -> bool:
    """Return whether the address of an access of global memory, or of a generic one, is known."""
    if word.operation == LDGSTS:
        return bool(word.field(_UNIFORM, 1)) and bool(word.field(_DESCRIPTOR, 1) or word.form == _COPY_FORM)
    is_plain = word.operation in (LDG, STG) and word.form == _PLAIN_FORM
    return bool(word.field(_UNIFORM, 1)) or arch < _DESCRIPTORS_FROM or is_plain


def _address(word: Word, arch: int) -> Address:
    at, width = (_COPY_OFFSET_AT, _COPY_OFFSET_BITS) if word.operation == LDGSTS else (_OFFSET_AT, _OFFSET_BITS)
    if not word.field(_UNIFORM, 1):
        at, width = (_LONG_OFFSET_AT, _LONG_OFFSET_BITS) if word.operation in (LD, ST) else (at, width)
        return Address(word.ra, bool(word.field(_EXTENDED, 1)), None, _offset(word, at, width))
    uniform = None if word.field(_DESCRIPTOR, 1) else _uniform(word, arch)
    wide = word.operation == LDGSTS or bool(word.field(_WIDE, 1))
    return Address(word.ra, wide, uniform, _offset(word, at, width))


def _shared_address(word: Word, arch: int) -> Address:
    uniform = _uniform(word, arch) if word.field(_UNIFORM, 1) else None
    shift = _SCALES[word.field(_SCALE_AT, _SCALE_BITS)]
    return Address(word.ra, False, uniform, _offset(word, _OFFSET_AT, _OFFSET_BITS), shared=True, shift=shift)


def _offset(word: Word, at: int, width: int) -> int:
    offset = word.field(at, width)
    return offset - ((offset >> width - 1) << width)


def _uniform(word: Word, arch: int) -> int | None:
    """The number of the uniform register that is added, None for the one that is always 0."""
    bits = 8 if arch >= _WIDE_FIELDS_FROM else 6
    number = word.field(_UNIFORM_AT[word.operation], bits)
    return None if number == (1 << bits) - 1 else number


def _access_bytes(word: Word, arch: int) -> int | None:
    at, width, sizes = _SIZE_AT, _SIZE_BITS, _SIZES
    if word.operation == LDGSTS and arch >= _NEW_COPIES_FROM:
        at, width, sizes = _COPY_SIZE_AT, _COPY_SIZE_BITS, _COPY_SIZES
    number = word.field(at, width)
    return sizes[number] if number < len(sizes) else None


def register_pair(register: int) -> tuple[int, int]:
    """The two registers of a 64-bit value; RZ stands for both of none."""
    return (RZ, RZ) if register == RZ else (register, register + 1)


# Atomics and reductions on global memory and generic addresses, as their words say it.
#
# Ra holds the address, 64 bits in a pair; signed bits from bit 40 on are added, 24 of them, or 23 in an atomic of
# sm_100 and later. A pair of uniform registers from bit 64 on is a descriptor, which says nothing of the address, or
# is added:
#
#     who                                    descriptor where this bit is set
#     RED and REDG                           71, from sm_100 on 81
#     ATOM and ATOMG                         71, from sm_100 on 76, of floating-point numbers 90
#
# Compare-and-swap has neither, and on sm_75, which has no descriptors, what lacks bit 91. Types from bit 73 on: four
# bits up to sm_89, and of floating-point numbers later; else three.

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
_LONG_BIT: Final = 72
"""True if addresses have 64 bits."""
_ATOMIC_UNIFORM_AT: Final = 64
_ATOMIC_OFFSET_AT: Final = 40
_TYPE_AT: Final = 73
_PAIR: Final[tuple[int, int]] = (70, 63)
"""Set where Ra of an atomic is a pair, up to sm_90 and later."""
_PAIR_OF_RED: Final = 90
_AMPERE: Final = 80
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
    """The access of an atomic or a reduction; None for any other instruction, those of shared memory among them.

    Raises UnsupportedKernelError for one whose address or type is not known.
    """
    if word.operation not in ATOM | ATOMG | RED:
        return None
    size = _atomic_bytes(word, arch)
    if size is None or not _is_known_form(word, arch):
        raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
    short = arch >= _BLACKWELL and word.operation not in RED | _SWAP_OPERATIONS
    width = 23 if short else 24
    offset = word.field(_ATOMIC_OFFSET_AT, width)
    address = Address(word.ra, True, _added_uniform(word, arch), offset - (offset >> width - 1 << width))
    return MemoryAccess(word.operation, address, size)


def _is_known_form(word: Word, arch: int) -> bool:
    """Return whether Ra is a pair, in a form whose uniform registers are known."""
    if not word.field(_LONG_BIT, 1):
        return False
    if word.operation in _SWAP_OPERATIONS or (arch < _AMPERE and not word.field(_UNIFORM, 1)):
        return not word.field(_UNIFORM, 1)
    pair = _PAIR_OF_RED if word.operation in RED else _PAIR[arch >= _BLACKWELL]
    return bool(word.field(_UNIFORM, 1)) and bool(word.field(pair, 1))


def _added_uniform(word: Word, arch: int) -> int | None:
    """The first uniform register that is added; None for none, or for the one that is always 0."""
    if not word.field(_UNIFORM, 1) or word.field(_descriptor_field(word.operation, arch), 1):
        return None
    bits = 8 if arch >= _BLACKWELL else 6
    number = word.field(_ATOMIC_UNIFORM_AT, bits)
    return None if number == (1 << bits) - 1 else number


def _descriptor_field(operation: int, arch: int) -> int:
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
    return (_SWAP_BYTES if word.operation in _SWAP_OPERATIONS else _INTEGER_BYTES).get(word.field(_TYPE_AT, 3))


# Where addresses come from.
#
# Registers are followed back over the blocks on all ways, from the address to the instructions that wrote it: through
# moves and sums, to constants of bank 0 that are parameters. A product is an offset, so its factors are not followed,
# nor is the result of a load. For a sum of several parameters, all are returned; their values show which of them is a
# pointer.

_RA, _RB, _RC = 24, 32, 64
UNIFORM_BASE: Final = 256
"""Number that stands for uniform register 0; ordinary registers have their own."""
_CONSTANT_FORMS: Final = frozenset({3, 5})
_UNIFORM_FORMS, _REGISTER_FORM = frozenset({6, 7}), 1
_NUMBER_FORMS: Final = frozenset({4})
"""Forms whose bits 63:32 hold a number as the second operand."""
_THIRD_FORMS: Final = frozenset({2, 3, 7})
"""Forms whose bits 63:32 hold the third operand, and 71:64 the second."""
_BANK, _CONSTANT = (54, 5), (40, 14)
_CONSTANT_UNIT: Final = 4
_MOVES: Final = frozenset({0x002, 0x082})
"""MOV, UMOV."""
_VIADD: Final = 0x036
_SUMS: Final = frozenset({0x010, _VIADD, 0x090, 0x097})
"""IADD3, VIADD, UIADD3, UIADD3.64."""
_SELECTIONS: Final = frozenset({0x007, 0x087})
"""SEL, USEL."""
_SHIFTED_SUMS: Final = frozenset({0x011, 0x091})
"""LEA, ULEA: a shifted offset and a base."""
_SHIFT, _OF_CLUSTER = (75, 5), 24
_PRODUCT_SUMS: Final = frozenset({0x024, 0x025, 0x0A4, 0x0A5})
"""IMAD, IMAD.WIDE and the uniform ones."""
_WIDE_PRODUCTS: Final = frozenset({0x025, 0x0A5})
_CONSTANT_LOADS: Final = frozenset({0x182, 0x0B9, 0x1AC})
"""LDC, ULDC, LDCU."""
_TO_UNIFORM: Final = 0x0CA
"""R2UR."""
_UNIFORM_PATH: Final = range(0x80, 0x100)
_UIADD3_64: Final = 0x097
_LDCU: Final = 0x1AC
_RESULT_SIZE, _RESULT_REGISTERS = (73, 3), (1, 1, 1, 1, 1, 2, 4, 4)


class AddressOrigins:
    """Finds the kernel parameters that the addresses of accesses of global memory come from."""

    def __init__(self, target: GraftTarget, graph: FlowGraph) -> None:
        self._target = target
        self._graph = graph
        self._parameters = tuple(target.parameter_ranges())

    def of_access(self, index: int) -> tuple[int, ...]:
        """Return the numbers of the parameters that an access gets its address from; () if they are unknown."""
        try:
            access = access_of(self._target.words[index], self._target.arch)
        except UnsupportedKernelError:
            return ()
        if access is None or access.address.shared:
            return ()
        uniform = access.address.uniform
        wanted = {*register_pair(access.address.register)} - {RZ}
        wanted |= set() if uniform is None else {UNIFORM_BASE + uniform, UNIFORM_BASE + uniform + 1}
        return tuple(sorted(set(self._numbers(self._constants(index, frozenset(wanted))))))

    def _constants(self, index: int, wanted: frozenset[int]) -> set[int]:
        """Return the offsets in bank 0 that registers before an instruction are computed from."""
        constants: set[int] = set()
        seen: dict[int, frozenset[int]] = {}
        ways = [(self._graph.block_at(index), index, wanted)]
        while ways:
            block, end, wanted = ways.pop()
            for at in range(end - 1, self._graph.blocks[block].start - 1, -1):
                if not wanted:
                    break
                wanted = self._before(self._target.words[at], wanted, constants)
            for before in self._graph.predecessors[block] if wanted else ():
                known = seen.get(before, frozenset())
                if not wanted <= known:
                    seen[before] = known | wanted
                    ways.append((before, self._graph.blocks[before].stop, wanted))
        return constants

    def _before(self, word: Word, wanted: frozenset[int], constants: set[int]) -> frozenset[int]:
        """Return the registers before an instruction that those behind it are computed from."""
        written = written_registers(word, self._target.arch)
        if not wanted & written:
            return wanted
        if (constant := _constant_of(word)) is not None:
            constants.add(constant)
        left = wanted - written if word.is_unconditional else wanted
        return left | frozenset(followed_registers(word, self._target.arch))

    def _numbers(self, constants: set[int]) -> Iterator[int]:
        for number, offsets in self._parameters:
            if any(constant in offsets for constant in constants):
                yield number


def written_registers(word: Word, arch: int) -> frozenset[int]:
    """Return the registers that an instruction writes in the lanes that execute it, if it may write addresses."""
    operation = word.operation
    if operation in _UNIFORM_PATH or operation == _LDCU:
        first = UNIFORM_BASE + word.field(16, uniform_bits(arch))
        return frozenset(range(first, first + _uniform_results(word)))
    if operation in _CONSTANT_LOADS:
        return frozenset(range(word.rd, word.rd + _RESULT_REGISTERS[word.field(*_RESULT_SIZE)])) - {RZ}
    if operation in _WIDE_PRODUCTS:
        return frozenset(register_pair(word.rd)) - {RZ}
    mask = operands_of(word.guarded(ALWAYS), arch).kills
    return frozenset(number for number in range(word.rd, min(word.rd + 8, RZ)) if mask >> number & 1)


def _uniform_results(word: Word) -> int:
    if word.operation in _CONSTANT_LOADS:
        return _RESULT_REGISTERS[word.field(*_RESULT_SIZE)]
    return 2 if word.operation in _WIDE_PRODUCTS or word.operation == _UIADD3_64 else 1


def added_number(word: Word) -> int | None:
    """Return the number that an instruction adds to the registers that are followed, or sets its result to; None of an
    instruction that does not.
    """
    operation = word.operation
    is_third = operation in _PRODUCT_SUMS and word.form == 2
    if is_third or (operation in _MOVES | _SUMS | _SHIFTED_SUMS and word.form in _NUMBER_FORMS):
        value = word.field(*IMMEDIATE)
        return value - (value >> 31 << 32)
    return None


def adds_product(word: Word) -> bool:
    """Return whether an instruction adds a product or a shifted register to the registers that are followed.

    The number of the block in its cluster, which is shifted into the highest byte, is none.
    """
    if word.operation in _SHIFTED_SUMS:
        return word.field(*_SHIFT) != _OF_CLUSTER
    is_sum = word.form in _NUMBER_FORMS and word.field(*IMMEDIATE) == 1
    return word.operation in _PRODUCT_SUMS and word.ra != RZ and not is_sum


def _constant_of(word: Word) -> int | None:
    """Return the offset of the constant of bank 0 in a followed operand; None without one."""
    if word.operation not in _CONSTANT_LOADS and (
        word.form not in _CONSTANT_FORMS
        or word.operation not in _MOVES | _SUMS | _SELECTIONS | _SHIFTED_SUMS | _PRODUCT_SUMS
        or (word.operation in _PRODUCT_SUMS and word.form not in _THIRD_FORMS)
    ):
        return None
    return None if word.field(*_BANK) else word.field(*_CONSTANT) * _CONSTANT_UNIT


def followed_registers(word: Word, arch: int) -> Iterator[int]:
    """Yield the registers that an address, or a part of it, may come from."""
    operation = word.operation
    if operation == _TO_UNIFORM:
        yield word.ra
    elif operation in _MOVES | _SHIFTED_SUMS:
        yield from _operand(word, _RB, arch)
    elif operation in _SUMS | _SELECTIONS:
        for at in (_RA, _RB, *((_RC,) if operation in _SUMS - {_VIADD} else ())):
            yield from _operand(word, at, arch)
    elif operation in _PRODUCT_SUMS:
        third = _RB if word.form in _THIRD_FORMS else _RC
        if word.form in _NUMBER_FORMS and word.field(*IMMEDIATE) == 1:  # IMAD.IADD
            yield from _operand(word, _RA, arch)
        for first in _operand(word, third, arch):
            yield from (first, first + 1) if operation in _WIDE_PRODUCTS else (first,)


def _operand(word: Word, at: int, arch: int) -> Iterator[int]:
    """Yield the register of an operand; nothing for a number, a constant, or a register that is always 0."""
    if at == _RB and word.form != _REGISTER_FORM and word.form not in _UNIFORM_FORMS:
        return
    if word.operation in _UNIFORM_PATH or (at == _RB and word.form in _UNIFORM_FORMS):
        number = word.field(at, uniform_bits(arch))
        if number != (1 << uniform_bits(arch)) - 1:
            yield UNIFORM_BASE + number
    elif word.field(at, 8) != RZ:
        yield word.field(at, 8)

"""Instructions that access memory, as their words say it: addresses, sizes, predicates.

Of a global or generic access: Ra holds the address, 64 bits in a pair (bit 90) or 32 bits that are extended by zeros;
24 signed bits from bit 40 on are added; and, where bit 91 is set and bit 76 is not, a pair of uniform registers. With
bit 76 that pair holds a descriptor, which says nothing of the address. Sizes from bit 73 on: 1, 1, 2, 2, 4, 8, 16.
On sm_75 there are no descriptors. An access without bit 91 names no uniform register; its bit 72 (``.E``) says that Ra
is a pair, and what it adds to a generic address has 32 bits, from bit 32 on.

Of a load or store of shared memory Ra holds an offset of 32 bits, times 1, 4, 8 or 16 by bits 79:78; with bit 91 a
single uniform register is added.

Of a copy to shared memory the 12 bits from bit 32 on are added to the address in global memory, those above them to
that in shared memory; bits 90:87 are the predicate of the lanes that read. It is known with a descriptor alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.access import Access, Address
from tui_probe.sass.words import RZ

if TYPE_CHECKING:
    from tui_probe.sass.words import Word

LD: Final = 0x180
LDG: Final = 0x181
ST: Final = 0x185
STG: Final = 0x186
LDS: Final = 0x184
STS: Final = 0x188
LDGSTS: Final = 0x1AE
BULK_COPIES: Final = range(0x1B4, 0x1BC)
"""UTMALDG, UTMASTG, UBLKCP and their kin."""

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


def access_of(word: Word, arch: int) -> Access | None:
    """The access of an instruction; None for one that accesses neither global or shared memory nor generic addresses.

    Atomics and loads of matrices are not among them. Raises UnsupportedKernelError for one whose address or size is
    not known.
    """
    operation = word.operation
    if operation not in _UNIFORM_AT:
        return None
    size = _bytes(word, arch)
    if operation in _SHARED:
        if size is None or word.form not in _SHARED_FORMS[operation]:
            raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
        return Access(operation, _shared_address(word, arch), size)
    unknown = operation == LDGSTS and not word.field(_DESCRIPTOR, 1)
    if size is None or unknown or not (word.field(_UNIFORM, 1) or arch < _DESCRIPTORS_FROM):
        raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
    address = _address(word, arch)
    if operation != LDGSTS:
        return Access(operation, address, size)
    reads = word.field(_COPY_PREDICATE, 4)
    return Access(operation, address, size, reads, bool(word.field(_ZERO_FILL, 1)))


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


def _bytes(word: Word, arch: int) -> int | None:
    at, width, sizes = _SIZE_AT, _SIZE_BITS, _SIZES
    if word.operation == LDGSTS and arch >= _NEW_COPIES_FROM:
        at, width, sizes = _COPY_SIZE_AT, _COPY_SIZE_BITS, _COPY_SIZES
    number = word.field(at, width)
    return sizes[number] if number < len(sizes) else None


def pair(register: int) -> tuple[int, int]:
    """The two registers of a 64-bit value; RZ stands for both of none."""
    return (RZ, RZ) if register == RZ else (register, register + 1)

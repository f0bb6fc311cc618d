"""Registers that SASS instructions may read and write, as masks: bit N is that of RN.

Of the few operations whose operands are known exactly it is known what they read and write; every other field that may
name a register counts as up to four registers that are read (eight from sm_100 on). So a register is never taken for
free by mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.sass.words import CONTROL_FLOW, RZ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.sass.words import Word

ALL_REGISTERS: Final = (1 << RZ) - 1
"""Mask of R0 to R254."""
_RET: Final = 0x150
_RA, _RB, _RC = 24, 32, 64
"""Lowest bits of the fields of 8 bits that name the registers read."""
_METADATA: Final = 40, 8
"""Field of the register with the positions of a sparse product's factors."""
_WITHOUT_REGISTERS: Final = frozenset({0x118, 0x11A, 0x141, 0x145, 0x147, 0x14D, 0x1C5, 0x1C8})
"""NOP, DEPBAR, BSYNC, BSSY, BRA, EXIT, WARPGROUP, USETMAXREG."""
_UNIFORM_PATH: Final = frozenset({0x02F, *range(0x80, 0x100)})
"""ELECT and the uniform path."""
_FROM_ORDINARY: Final = frozenset({0x0CA, 0x0CC})
"""R2UR, CREDUX."""
_REGISTER_FORMS, _REGISTER_FORMS_FROM_100 = frozenset({0, 1}), frozenset({0, 1, 3})
"""Forms with a register in 39:32; others have a number, a constant or a uniform register there."""
_TESTS: Final = frozenset({0x00B, 0x00C, 0x01C, 0x02A})
"""FSETP, ISETP, PLOP3, DSETP: without a third register."""
_SECOND_IN_ALL_FORMS: Final = frozenset(
    {0x044, *range(0x185, 0x18B), 0x18C, 0x18E, *range(0x1A1, 0x1AA), 0x1AE, *CONTROL_FLOW} - {0x15D}
)
"""Stores, atomics, SHFL, and branches to addresses in registers, but not NANOSLEEP."""
_UNIFORM_THIRD: Final = frozenset({*range(0x180, 0x189), 0x1A7, 0x1AE, 0x1B1})
"""Loads, stores, copies and SYNCS: bits 71:64 name a uniform register."""
_WARPGROUP_PRODUCTS: Final = range(0x1F0, 0x1F4)
"""HGMMA, IGMMA, BGMMA, QGMMA: 64 x N sums in N / 2 registers at most."""
_COLUMNS: Final = 53, 5
"""Field of N / 8 - 1."""
_TENSOR_MEMORY: Final = range(0x1E0, 0x1F0)
"""Loads and stores of tensor memory, and instructions of tcgen05."""
_MAX_TENSOR_REGISTERS: Final = 128
"""Registers of a thread that one load or store of tensor memory names at most."""
WITHOUT_SCOREBOARD: Final = frozenset({*_WARPGROUP_PRODUCTS, *_TENSOR_MEMORY})
"""Operations whose registers are in use until a wait of another kind than for a scoreboard."""
_SINGLE_REGISTER: Final = frozenset(
    {0x002, 0x007, 0x008, 0x009, 0x00A, 0x010, 0x011, 0x012, 0x013, 0x016, 0x017, 0x019, 0x01A, 0x01B, 0x020, 0x021}
    | {0x023, 0x024, 0x030, 0x031, 0x032, 0x036, 0x03E, 0x045, 0x048, 0x108}
)
"""MOV, SEL, FSEL, FMNMX, FSET, IADD3, LEA, LOP3, IABS, PRMT, IMNMX, SHF, SGXT, BMSK, FMUL, FADD, FFMA, IMAD, HADD2,
HFMA2, HMUL2, VIADD, F2FP, I2FP, VIMNMX, MUFU: each operand and the result are one register.
"""
_SINGLE_REGISTER_TESTS: Final = frozenset({0x00B, 0x00C})
"""FSETP, ISETP: each operand is one register, and there is no result in one."""
_LOADS: Final = frozenset({0x180, 0x181, 0x183, 0x184})
"""LD, LDG, LDL, LDS: an address of up to two registers, and a result as wide as the access."""
_HMMA, _WIDE_IMAD = 0x03C, 0x025
"""They read up to four registers, and write two or four."""
_OTHER_RESULTS: Final = frozenset({0x005, 0x03B, 0x104, 0x105, 0x106, 0x107, 0x109, 0x119, 0x182, 0x189})
"""CS2R, LDSM, F2F, F2I, I2F, FRND, POPC, S2R, LDC, SHFL: they write at least the register that they name first."""
_ACCESS_SIZE: Final = 73, 3
_SIZE_REGISTERS: Final = (1, 1, 1, 1, 1, 2, 4, 4)
"""Registers by value of the field: U8, S8, U16, S16, 32, 64, 128 bits."""
PAIR: Final = 2
_QUAD: Final = 4
_MAX_OPERAND, _MAX_OPERAND_FROM_100, _NEW_FORMS_FROM = 4, 8, 100
"""Registers of the longest operand of another operation, and the first architecture with eight."""


@dataclass(frozen=True, slots=True)
class Operands:
    """Registers of an instruction as masks: those that it may read, those that it may write, and those that it
    certainly writes in all lanes.
    """

    read_mask: int
    write_mask: int
    kill_mask: int


class _Widths(NamedTuple):
    """Numbers of registers: of an operand at most, of the result at least and at most."""

    operand: int
    min_result: int
    max_result: int


def operands_of(word: Word, arch: int) -> Operands:
    """Return the registers that an instruction may read and write."""
    operation = word.operation
    if operation == _RET:  # nothing is known of the caller
        return Operands(ALL_REGISTERS, 0, 0)
    if operation in _WITHOUT_REGISTERS or operation in _UNIFORM_PATH:
        return Operands(_mask(word.ra, 1) if operation in _FROM_ORDINARY else 0, 0, 0)
    max_operand = _MAX_OPERAND_FROM_100 if arch >= _NEW_FORMS_FROM else _MAX_OPERAND
    widths = _widths(word, max_operand)
    read_mask = reduce(or_, (_mask(word.field(bit, 8), widths.operand) for bit in _sources(word, arch)), 0)
    if operation in WITHOUT_SCOREBOARD:
        read_mask |= _matrix_operands(word)
    elif (
        not widths.min_result and operation not in _SINGLE_REGISTER_TESTS
    ):  # the field may name what is read, or no register
        read_mask |= _mask(word.rd, max_operand)
    kill_mask = _mask(word.rd, widths.min_result) if word.is_unconditional else 0
    return Operands(read_mask, _mask(word.rd, widths.max_result), kill_mask)


def _widths(word: Word, max_operand: int) -> _Widths:
    operation = word.operation
    if operation in _SINGLE_REGISTER:
        return _Widths(1, 1, 1)
    if operation in _SINGLE_REGISTER_TESTS:
        return _Widths(1, 0, 0)
    if operation in _LOADS:
        size = _SIZE_REGISTERS[word.field(*_ACCESS_SIZE)]
        return _Widths(PAIR, size, size)
    if operation in (_HMMA, _WIDE_IMAD):
        return _Widths(_QUAD, PAIR, _QUAD)
    return _Widths(max_operand, 1 if operation in _OTHER_RESULTS else 0, max_operand)


def _matrix_operands(word: Word) -> int:
    """Return the mask of the registers that a product or an access of tensor memory may use, results included."""
    if word.operation in _TENSOR_MEMORY:
        return _mask(word.rd, _MAX_TENSOR_REGISTERS) | _mask(word.rb, _MAX_TENSOR_REGISTERS)
    return _mask(word.rd, 4 * (1 + word.field(*_COLUMNS))) | _mask(word.field(*_METADATA), 1)


def _mask(register: int, count: int) -> int:
    """Return the mask of registers in a row; 0 for RZ, which holds nothing."""
    return 0 if register == RZ else ((1 << count) - 1) << register & ALL_REGISTERS


def _sources(word: Word, arch: int) -> Iterator[int]:
    """Yield the fields behind the first that may hold a register. Those of some words hold other numbers: then less
    seems free.
    """
    yield _RA
    if word.operation not in _UNIFORM_THIRD and word.operation not in _TESTS:
        yield _RC
    forms = _REGISTER_FORMS_FROM_100 if arch >= _NEW_FORMS_FROM else _REGISTER_FORMS
    if word.form in forms or word.operation in _SECOND_IN_ALL_FORMS:
        yield _RB

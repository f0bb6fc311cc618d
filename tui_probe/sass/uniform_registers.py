"""Uniform registers, one per warp: those that instructions use or name, and their replacement.

Which of them a kernel uses is reported without knowing every instruction: where it is not known whether a field names
one, it counts as one. Of the few instructions that ptxas makes of snippets it is known exactly: they can be given
others.

Where fields are, by operation: the uniform path (0x80 to 0xff) has its own in all of them; the ordinary path has one
instead of its second operand, where bit 91 says so; of what reads memory the place depends on the operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.sass.words import LDC, LDCU, NO_BARRIER, ULDC, UNIFORM_OPERAND, Word, new_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNIFORM_REGISTERS: Final = 63
"""Usable uniform registers; newer architectures have more, which nothing here uses. ptxas never takes the last one:
none of 21 742 kernels of PyTorch for sm_90 names it, not even a reduction that needs all others.
"""
FIRST_FREE_UNIFORM: Final = 4
"""ptxas leaves those below unchanged, and so do we."""

UNIFORM_KEPT_BY_CALLS: Final = 36
"""First uniform register that functions leave unchanged: ptxas keeps values in these across calls."""

WIDE_FROM: Final = 100
"""The first architecture whose fields have eight bits instead of six."""
_R2UR: Final = 0x2CA | 0x000E0000 << 64
_OLDER_R2UR: Final = 0x3C2 | 0x000E0000 << 64
_R2UR_FROM: Final = 90
"""First architecture with the instruction of fixed latency."""
_UNIFORM_RESULT_CYCLES: Final = 13
"""Cycles that ptxas keeps between R2UR and the use of its result."""
_RD, _RA, _RB, _RC = 16, 24, 32, 64
_TEXTURE: Final = 40
_UNIFORM_PATH: Final = range(0x80, 0x100)
_ORDINARY_PATHS: Final = (range(0x80), range(0x100, 0x140))
_NUMBERS: Final = frozenset({2, 3, 4, 5})
"""Forms whose bits 63:32 hold a number or a constant."""
_LOADS: Final = frozenset({0x03B, 0x180, 0x181, 0x183, 0x184})
"""LDSM, LD, LDG, LDL, LDS."""
_STORES: Final = frozenset(
    {0x044, 0x185, 0x186, 0x187, 0x188, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E}
    | {0x1A1, 0x1A2, 0x1A3, 0x1A6, 0x1A8, 0x1A9, 0x1AE, 0x1BD, 0x1BE}
)
"""STSM, ST, STG, STL, STS, ATOM, ATOMS, RED, ATOMG, LDGSTS, STAS, REDAS."""
_TEXTURES: Final = frozenset([*range(0x160, 0x178), *range(0x193, 0x19B), 0x1B3])
_BARRIERS: Final = frozenset({0x1A7, 0x1B1})
"""SYNCS with an address in a register and a uniform one."""
_BRANCHES: Final = frozenset({0x141, 0x145, 0x147, 0x14D})
"""BSYNC, BSSY, BRA, EXIT: a branch may depend on a uniform register."""
_TO_UNIFORM: Final = frozenset({0x0CA, 0x0CB, 0x1C2, 0x1C3, 0x1C4, 0x1CE})
"""R2UR, CS2UR, S2UR, REDUX, ULEPC: with a uniform result, and without a uniform operand."""
_S2UR, _REDUX = 0x1C3, 0x1C4
_ELECT: Final = 0x02F
_WIDTH, _WIDTH_OF_PAIR = (73, 3), 5
_KIND: Final = 0xFFF | 0b111 << _WIDTH[0] | 1 << UNIFORM_OPERAND[0]
"""Bits of a word that decide which of its fields may name uniform registers: all that ``_uniform_fields`` reads."""
_OF_32_BITS: Final = frozenset(
    {0x002, 0x007, 0x008, 0x00B, 0x00C, 0x010, 0x011, 0x012, 0x016, 0x019, 0x01A, 0x020, 0x021, 0x023, 0x024}
)
"""MOV, SEL, FSEL, FSETP, ISETP, IADD3, LEA, LOP3, PRMT, SHF, SGXT, FMUL, FADD, FFMA, IMAD: they read one register."""
_MATRIX: Final = range(0x1D0, 0x200)
"""HGMMA and the like: before sm_100 they add to ordinary registers and have descriptors in four uniform ones."""
_DESCRIPTORS_FORM, _REGISTERS_FORM = 4, 6
_TENSOR_COPIES: Final = range(0x1B4, 0x1BC)
_OCTET, _QUAD, _PAIR = 8, 4, 2
"""Registers in a row that a field may name."""
_SOURCES_OF_UNIFORM: Final[Mapping[int, tuple[int, ...]]] = {
    0x082: (_RB,),  # UMOV
    0x086: (),  # VOTEU
    0x087: (_RA, _RB),  # USEL
    0x090: (_RA, _RB, _RC),  # UIADD3
    0x091: (_RA, _RB, _RC),  # ULEA
    0x092: (_RA, _RB, _RC),  # ULOP3
    0x096: (_RA, _RB, _RC),  # UPRMT
    0x097: (_RA, _RB, _RC),  # UIADD3.64
    0x099: (_RA, _RB, _RC),  # USHF
    0x0A4: (_RA, _RB, _RC),  # UIMAD
    0x0A5: (_RA, _RB, _RC),  # UIMAD.WIDE
    0x0B9: (),  # ULDC
    0x0BD: (_RB,),  # UFLO
    0x0BF: (_RB,),  # UPOPC
    0x0CB: (),  # CS2UR
}
UNIFORM_MEMORY_FIELDS: Final[Mapping[int, int]] = {
    0x180: _RB, 0x181: _RB, 0x184: _RB, 0x186: _RC, 0x188: _RC, 0x18E: _RC, 0x1A8: _RC,
}  # fmt: skip
"""LD, LDG, LDS, STG, STS, RED, ATOMG: where their uniform register is."""
_OPERATIONS_WITHOUT_UNIFORM: Final = frozenset(
    {0x119, 0x118, 0x11A, 0x14D, 0x005, 0x182, 0x147, 0x189, 0x191, 0x192, 0x1A1, 0x1AA, 0x1AF}
)
"""S2R, NOP, DEPBAR, EXIT, CS2R, LDC, BRA, SHFL, ERRBAR, MEMBAR, MATCH, QSPC, LDGDEPBAR: without any, unless bit 91 says
that they have one.
"""


def uniform_bits(arch: int) -> int:
    """Return the width of fields of uniform registers."""
    return 8 if arch >= WIDE_FROM else 6


def to_uniform_word(arch: int, destination: int, source: int, scoreboard: int = NO_BARRIER) -> Word:
    """Return an ``R2UR``, which moves an ordinary register of a lane to a uniform register.

    Before sm_90 the instruction is another one, and sets a scoreboard when the result is there.
    """
    if arch < _R2UR_FROM:
        word = new_word(_OLDER_R2UR, 1).with_write_barrier(scoreboard)
    else:
        word = new_word(_R2UR, _UNIFORM_RESULT_CYCLES)
    return word.with_field(_RD, uniform_bits(arch), destination).with_field(_RA, 8, source)


def used_uniform_registers(words: Iterable[Word], arch: int) -> frozenset[int]:
    """Return the uniform registers that instructions may use; some of them may be unused."""
    field_mask, used_mask = (1 << uniform_bits(arch)) - 1, 0
    fields_of: dict[int, tuple[tuple[int, int], ...]] = {}  # a kernel has thousands of words, of some tens of kinds
    for word in words:
        kind = word.bits & _KIND
        fields = fields_of.get(kind)
        if fields is None:
            fields = fields_of[kind] = tuple(_uniform_fields(Word(kind), arch))
        for bit, count in fields:
            used_mask |= (1 << count) - 1 << (word.bits >> bit & field_mask)
    return frozenset(number for number in range(UNIFORM_REGISTERS) if used_mask >> number & 1)


def _uniform_fields(word: Word, arch: int) -> Iterable[tuple[int, int]]:
    """Bit fields in which uniform registers may be named: the lowest bit, and how many follow one another from that
    number on.
    """
    operation = word.operation
    if operation in _TO_UNIFORM:
        yield _RD, _PAIR
    elif operation in _UNIFORM_PATH:
        yield from _uniform_path_fields(word)
    elif operation in (_ELECT, LDCU):
        yield from ((_RD, _QUAD), (_RA, _PAIR), (_RB, _PAIR))
    elif operation in _MATRIX:
        yield from ((bit, _OCTET) for bit in (_RD, _RA, _RB, _RC)) if arch >= WIDE_FROM else _product_fields(word)
    elif operation in _TENSOR_COPIES:
        yield from ((bit, _OCTET) for bit in (_RA, _RB, _RC, _TEXTURE))
    elif not word.is_uniform_operand:
        return
    elif operation in _BRANCHES:
        yield _RA, _PAIR
    elif operation in _LOADS:
        yield from ((_RB, _PAIR), (_RC, _PAIR))
    elif operation in _STORES or operation in _BARRIERS:
        yield _RC, _PAIR
    elif operation in _TEXTURES:
        yield _TEXTURE, _PAIR
    elif operation == LDC or any(operation in path for path in _ORDINARY_PATHS):
        yield _RB, 1 if operation in _OF_32_BITS and arch < WIDE_FROM else _PAIR
    else:
        yield from ((bit, _QUAD) for bit in (_RD, _RA, _RB, _RC))


def _product_fields(word: Word) -> Iterable[tuple[int, int]]:
    """Return the fields of the descriptors of a product before sm_100: of A in shared memory those of both matrices
    follow one another, of A in registers that of B is at its place.
    """
    if word.form == _DESCRIPTORS_FORM:
        return ((_RA, _QUAD),)
    return ((_RB, _QUAD),) if word.form == _REGISTERS_FORM else ((_RA, _QUAD), (_RB, _QUAD))


def _uniform_path_fields(word: Word) -> Iterable[tuple[int, int]]:
    if word.operation == ULDC:
        width = word.field(*_WIDTH)
        if width < _WIDTH_OF_PAIR:
            yield _RD, 1
        else:
            yield _RD, _PAIR if width == _WIDTH_OF_PAIR else _QUAD
        return
    yield _RD, _PAIR
    yield _RA, _PAIR
    yield _RC, _PAIR
    if word.form not in _NUMBERS:
        yield _RB, _PAIR


def uniform_register_at(word: Word, bit: int, arch: int) -> int:
    """Return the number of the uniform register in the field whose lowest bit is ``bit``."""
    return word.field(bit, uniform_bits(arch))


def exact_uniform_fields(word: Word) -> tuple[int, ...] | None:
    """Return the fields in which a word of a snippet names uniform registers; None for an instruction that is not known
    well enough.
    """
    operation = word.operation
    if operation in _SOURCES_OF_UNIFORM:
        sources = _SOURCES_OF_UNIFORM[operation]
        return (_RD, *(bit for bit in sources if bit != _RB or word.form not in _NUMBERS))
    if operation in (_S2UR, _REDUX):
        return (_RD,)
    if operation == LDCU:
        return _RD, _RA
    if operation in UNIFORM_MEMORY_FIELDS:
        return (UNIFORM_MEMORY_FIELDS[operation],) if word.is_uniform_operand else ()
    if operation in _OPERATIONS_WITHOUT_UNIFORM:
        return None if word.is_uniform_operand else ()
    if any(operation in path for path in _ORDINARY_PATHS) and operation != _ELECT:
        return (_RB,) if word.is_uniform_operand else ()
    return None


def named_uniform_registers(word: Word, arch: int) -> frozenset[int] | None:
    """Return the uniform registers that a word of a snippet names, the first of each; None where that is not known."""
    fields = exact_uniform_fields(word)
    if fields is None:
        return None
    return frozenset(number for bit in fields if (number := uniform_register_at(word, bit, arch)) < UNIFORM_REGISTERS)


def with_uniform_registers(word: Word, numbers: Mapping[int, int], arch: int) -> Word:
    """Return a word of a snippet with other uniform registers. Raises KeyError for one that has no other."""
    for bit in exact_uniform_fields(word) or ():
        number = uniform_register_at(word, bit, arch)
        if number < UNIFORM_REGISTERS:
            word = word.with_field(bit, uniform_bits(arch), numbers[number])
    return word

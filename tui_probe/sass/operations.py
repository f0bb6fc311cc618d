"""Operations of SASS: names, classes of work, matrix products, bulk copies, whether blocks may wait for one another.

The classes are those of PTX (``ptx/instruction_facts.py``), so that a probe of ``block.fp32`` means the same. Other
than there every instruction is one that is issued, the moves and loads of constants among ``other``, too. The names are
those of nvdisasm for sm_80 to sm_120; ``python -m tests.bench.sass_operations`` looks for others in libraries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import accesses
from tui_probe.sass.accesses import ATOM, ATOMG, RED, atomic_of
from tui_probe.sass.words import uniform_bits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.sass.accesses import MemoryAccess
    from tui_probe.sass.words import Word

_OPERATION_NAMES: Final[dict[int, str]] = {
    int(number, 16): name
    for number, name in re.findall(
        r"(\w+):(\w+)",
        """
        001:PMTRIG 002:MOV 003:P2R 004:R2P 005:CS2R 006:VOTE 007:SEL 008:FSEL 009:FMNMX 00a:FSET 00b:FSETP 00c:ISETP
        00f:VIMNMX3 010:IADD3 011:LEA 012:LOP3 013:IABS 015:VABSDIFF4 016:PRMT 017:IMNMX 019:SHF 01a:SGXT 01b:BMSK
        01c:PLOP3 020:FMUL 021:FADD 023:FFMA 024:IMAD 025:IMAD 026:IDP 027:IMAD 028:DMUL 029:DADD 02a:DSETP 02b:DFMA
        02d:PREEXIT 02e:ACQBULK 02f:ELECT 030:HADD2 031:HFMA2 032:HMUL2 033:HSET2 034:HSETP2 036:VIADD 037:IMMA
        03a:MOVM 03b:LDSM 03c:HMMA 03d:BMMA 03e:F2FP 03f:DMMA 040:HMNMX2 043:F2IP 044:STSM 045:I2FP 046:VIADDMNMX
        048:VIMNMX 049:FFMA2 04b:FADD2 04c:UVIRTCOUNT 051:UFSEL 053:UFSETP 054:UFADD 055:UFFMA 056:UFMUL 05a:UI2F
        05c:UF2I 05e:UI2FP 076:FMNMX3 07a:QMMA 082:UMOV 083:UP2UR 085:UIMNMX 086:VOTEU 087:USEL 08c:UISETP 090:UIADD3
        091:ULEA 092:ULOP3 096:UPRMT 097:UIADD3 099:USHF 09a:USGXT 09c:UPLOP3 0a4:UIMAD 0a5:UIMAD 0a6:UIMAD 0b9:ULDC
        0bb:ULDC 0bd:UFLO 0bf:UPOPC 0ca:R2UR 0cb:CS2UR 0cc:CREDUX 100:FLO 101:BREV 102:FCHK 104:F2F 105:F2I 106:I2F
        107:FRND 108:MUFU 109:POPC 110:F2F 111:F2I 112:I2F 113:FRND 118:NOP 119:S2R 11a:DEPBAR 11b:ENDCOLLECTIVE
        11c:B2R 11d:BAR 141:BSYNC 142:BREAK 143:CALL 144:CALL 145:BSSY 146:YIELD 147:BRA 148:WARPSYNC 149:BRX 14d:EXIT
        14e:LEPC 150:RET 155:BMOV 156:BMOV 158:BRXU 15c:BPT 15d:NANOSLEEP 160:TEX 163:TLD4 166:TLD 180:LD 181:LDG
        182:LDC 183:LDL 184:LDS 185:ST 186:STG 187:STL 188:STS 189:SHFL 18a:ATOM 18b:ATOM 18c:ATOMS 18d:ATOMS 18e:RED
        18f:CCTL 192:MEMBAR 19d:SUST 1a1:MATCH 1a2:ATOM 1a3:ATOMG 1a4:LDGMC 1a5:LDGMC 1a6:REDG 1a7:SYNCS 1a8:ATOMG
        1a9:ATOMG 1aa:QSPC 1ab:ERRBAR 1ac:LDCU 1ae:LDGSTS 1af:LDGDEPBAR 1b0:ARRIVES 1b1:SYNCS 1b2:SYNCS 1b4:UTMALDG
        1b5:UTMASTG 1b6:UTMAREDG 1b7:UTMACMDFLUSH 1b8:UTMAPF 1b9:UTMACCTL 1ba:UBLKCP 1bb:UBLKRED 1bc:UBLKPF 1bd:STAS
        1c2:R2UR 1c3:S2UR 1c4:REDUX 1c5:WARPGROUP 1c6:FENCE 1c7:UCGABAR 1c8:USETMAXREG 1c9:USETSHMSZ 1ca:UGETNEXTWORKID
        1e3:UTCATOMSWS 1e9:UTCBAR 1ea:UTCIMMA 1ee:LDTM 1f0:HGMMA 1f1:IGMMA 1f2:BGMMA 1f3:QGMMA
        """,
    )
}
_CHANGED_NAMES: Final = {0x035: ("HFMA2", 120, "IADD"), 0x04A: ("FMUL2", 120, "UVIMNMX")}
"""The name of an operation before an architecture, and from that on."""
_CLASSES: Final = {
    name: work
    for work, names in {
        "fp32": "FSEL FMNMX FSET FSETP FMUL FADD FFMA FFMA2 FADD2 FMUL2 FMNMX3 FCHK MUFU UFSEL UFSETP UFADD"
        " UFFMA UFMUL",
        "fp64": "DMUL DADD DSETP DFMA",
        "fp16": "HADD2 HFMA2 HMUL2 HSET2 HSETP2 HMNMX2",
        "integer": "SEL ISETP VIMNMX3 IADD3 LEA LOP3 IABS PRMT IMNMX SHF SGXT BMSK PLOP3 IMAD IDP VIADD VIADDMNMX"
        " VIMNMX UVIMNMX UIMNMX USEL UISETP UIADD3 ULEA ULOP3 UPRMT USHF UPLOP3 UIMAD UFLO UPOPC USGXT VABSDIFF4"
        " FLO BREV POPC IADD",
        "tensor": "IMMA HMMA BMMA DMMA QMMA HGMMA IGMMA BGMMA QGMMA UTCIMMA",
        "load": "TEX TLD TLD4 LD LDG LDL LDS LDSM LDGMC LDGSTS LDTM UTMALDG UBLKCP",
        "store": "ST STG STL STS STSM STAS SUST UTMASTG UTMAREDG UBLKRED",
        "atomic": "ATOM ATOMS ATOMG RED REDG",
        "branch": "BSYNC BREAK CALL BSSY BRA BRX BRXU EXIT RET",
        "barrier": "BAR DEPBAR MEMBAR ERRBAR SYNCS LDGDEPBAR ARRIVES WARPGROUP FENCE UCGABAR WARPSYNC ACQBULK UTCBAR",
    }.items()
    for name in names.split()
}
_HALF_OPERATIONS: Final = frozenset({0x030, 0x031, 0x032, 0x033, 0x034, 0x035, 0x040})
_IS_BFLOAT: Final = 85
"""Bit of a half-precision operation that is set if its numbers are bfloat16."""
_TEXTURES: Final = range(0x160, 0x178)
"""Loads through textures, whose names no one needs here."""
_WARP: Final = 32
_HMMA, _IMMA, _BMMA, _DMMA, _QMMA = 0x03C, 0x037, 0x03D, 0x03F, 0x07A
_SHAPES: Final[dict[int, tuple[tuple[int, ...], dict[tuple[int, ...], int]]]] = {
    _HMMA: ((78, 75), {(0, 0): 16 * 8 * 8, (0, 1): 16 * 8 * 16, (1, 0): 16 * 8 * 4, (1, 1): 16 * 8 * 32}),
    _IMMA: (
        (86, 85, 75),
        {
            (0, 0, 0): 8 * 8 * 16,
            (0, 1, 0): 8 * 8 * 32,
            (1, 0, 0): 16 * 8 * 16,
            (1, 0, 1): 16 * 8 * 32,
            (1, 1, 0): 16 * 8 * 64,
        },
    ),
    _BMMA: ((76, 75), {(0, 0): 8 * 8 * 128, (0, 1): 16 * 8 * 128, (1, 0): 16 * 8 * 256}),
    _QMMA: ((75,), {(0,): 16 * 8 * 16, (1,): 16 * 8 * 32}),
}
PRODUCT_NAMES: Final = {
    _HMMA: "HMMA", _IMMA: "IMMA", _BMMA: "BMMA", _DMMA: "DMMA", _QMMA: "QMMA",
    0x1F0: "HGMMA", 0x1F1: "IGMMA", 0x1F2: "BGMMA", 0x1F3: "QGMMA",
}  # fmt: skip
_WARPGROUP: Final = 128
_WARPGROUP_M: Final = 64
_GROUP_N_AT, _GROUP_N_BITS, _GROUP_N_UNIT = 53, 5, 8
_HGMMA, _QGMMA = 0x1F0, 0x1F3
_UNKNOWN_PRODUCTS: Final = frozenset({0x1F1, 0x1F2})
"""IGMMA, BGMMA: of no known shape."""
_NEVER_SET: Final = {_IMMA: (73, 77, 79)}
"""Bits that say something of a shape that is not known."""
_TF32: Final = 58
"""Bit of HGMMA that is set if its numbers are TF32."""
PRODUCT_OPERATIONS: Final = frozenset({*_SHAPES, _DMMA, _HGMMA, _QGMMA}) | _UNKNOWN_PRODUCTS
_FIRST_WIDE_DMMA: Final = 90
"""The first architecture whose DMMA has several shapes; before, it is 8 × 8 × 4."""
_ACCESS_NAMES: Final = {
    accesses.LD: "LD",
    accesses.LDG: "LDG",
    accesses.LDS: "LDS",
    accesses.ST: "ST",
    accesses.STG: "STG",
    accesses.STS: "STS",
    accesses.LDGSTS: "LDGSTS",
    **dict.fromkeys(ATOM, "ATOM"),
    **dict.fromkeys(ATOMG, "ATOMG"),
    **dict.fromkeys(RED, "REDG"),
    **PRODUCT_NAMES,
}
_GLOBAL_FROM: Final = 90
"""The first architecture for which nvdisasm prints REDG for RED."""
_WIDE_SUFFIXES: Final = {8: ".64", 16: ".128"}
_NARROW_SUFFIXES: Final = {1: ".8", 2: ".16"}


def operation_name(word: Word, arch: int) -> str:
    """The name up to the first dot, ``HFMA2``; "" for an operation that is not known."""
    if word.operation in _CHANGED_NAMES:
        before, first, since = _CHANGED_NAMES[word.operation]
        return since if arch >= first else before
    return _OPERATION_NAMES.get(word.operation, "")


def operation_class(word: Word, arch: int) -> str:
    """The class of an instruction; ``other`` for one that is not known."""
    work = _CLASSES.get(operation_name(word, arch), "load" if word.operation in _TEXTURES else "other")
    return "bf16" if work == "fp16" and word.operation in _HALF_OPERATIONS and word.field(_IS_BFLOAT, 1) else work


class MatrixProduct(NamedTuple):
    """``share`` is what one lane stands for of the multiply-adds; ``of_group``: four warps work together."""

    share: int
    of_group: bool


def matrix_product(word: Word, arch: int) -> MatrixProduct:
    """The product of one of ``PRODUCT_OPERATIONS``. Raises UnsupportedKernelError for a shape that is not known."""
    if word.operation == _DMMA and arch < _FIRST_WIDE_DMMA:
        return MatrixProduct(8 * 8 * 4 // _WARP, of_group=False)
    if word.operation in (_HGMMA, _QGMMA):
        n = (word.field(_GROUP_N_AT, _GROUP_N_BITS) + 1) * _GROUP_N_UNIT
        k = 32 if word.operation == _QGMMA else 8 if word.field(_TF32, 1) else 16
        return MatrixProduct(_WARPGROUP_M * n * k // _WARPGROUP, of_group=True)
    bits, shapes = _SHAPES.get(word.operation, ((), {}))
    products = shapes.get(tuple(word.field(bit, 1) for bit in bits))
    if not products or any(word.field(bit, 1) for bit in _NEVER_SET.get(word.operation, ())):
        raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
    return MatrixProduct(products // _WARP, of_group=False)


def known_access(word: Word, arch: int) -> MemoryAccess | None:
    """Return what an instruction accesses; None for one that accesses nothing, or of an unknown form."""
    try:
        return accesses.access_of(word, arch) or atomic_of(word, arch)
    except UnsupportedKernelError:
        return None


_TENSOR_LOAD, _TENSOR_STORES, _TENSOR_PREFETCH = 0x1B4, frozenset({0x1B5, 0x1B6}), 0x1B8
"""UTMALDG; UTMASTG and UTMAREDG; UTMAPF."""
_BEFORE_COORDINATES: Final = {_TENSOR_LOAD: 2, **dict.fromkeys(_TENSOR_STORES, 1), _TENSOR_PREFETCH: 0}
"""Uniform registers before the coordinates: the address in shared memory, and that of the mbarrier."""
_TENSOR_COPIES: Final = frozenset(_BEFORE_COORDINATES)
_BULK_COPIES: Final = frozenset({0x1BA, 0x1BB})
"""UBLKCP, UBLKRED."""
_BULK_PREFETCH: Final = 0x1BC
UNIFORM_COPIES: Final = _TENSOR_COPIES | _BULK_COPIES | {_BULK_PREFETCH}
_DIRECTION: Final = 73, 2
_TO_SHARED, _TO_GLOBAL = 1, 2
_SIZE_REGISTER: Final = 64
_FIRST_OPERAND, _SECOND_OPERAND = 32, 24
"""Positions of uniform registers with the operands of copies: in shared memory the address, and of loads the mbarrier,
then the coordinates of a box; in global memory the address of the bytes or of the map.
"""
_MULTICAST: Final = 75, 1
_FORM, _LAST_DIMENSION = (82, 3), (79, 3)
"""Fields of copies by tensor map: 0 for tiles, others for pixels (im2col) and gathers; the dimensions, less 1."""


@dataclass(frozen=True, slots=True)
class BulkCopy:
    """A bulk copy between global and shared memory, or a prefetch of one, which a warp executes once for all its lanes.

    ``size`` is the uniform register whose low 16 bits are the size in units of 16 bytes; None if a tensor map has it.
    ``address`` is the first of two uniform registers with the address of the bytes, or of the map. A box has that many
    ``dimensions``, and its coordinates are in the uniform registers from ``coordinates`` on; 0 for other forms.
    """

    is_load: bool
    is_prefetch: bool
    size: int | None
    address: int
    coordinates: int = 0
    dimensions: int = 0
    is_multicast: bool = False

    @property
    def suffix(self) -> str:
        """``.2D``, ``.S.G.MULTICAST``: what follows the name of the instruction."""
        form = f".{self.dimensions}D" if self.dimensions else ""
        if self.size is not None and not self.is_prefetch:
            form = ".S.G" if self.is_load else ".G.S"
        return form + ".MULTICAST" * self.is_multicast


def bulk_copy_of(word: Word, arch: int) -> BulkCopy | None:
    """Return the bulk copy that an instruction starts; None for other instructions, and between shared memories."""
    operation = word.operation
    if operation not in UNIFORM_COPIES:
        return None
    bits = uniform_bits(arch)
    first, second, size = (word.field(at, bits) for at in (_FIRST_OPERAND, _SECOND_OPERAND, _SIZE_REGISTER))
    is_multicast = bool(word.field(*_MULTICAST))
    if operation in _TENSOR_COPIES:
        is_load, dimensions = operation not in _TENSOR_STORES, word.field(*_LAST_DIMENSION) + 1
        dimensions = 0 if word.field(*_FORM) else dimensions
        coordinates = first + _BEFORE_COORDINATES[operation]
        return BulkCopy(
            is_load, operation == _TENSOR_PREFETCH, None, second, coordinates, dimensions, is_multicast=is_multicast
        )
    if operation == _BULK_PREFETCH:
        return BulkCopy(True, True, size, second)
    direction = word.field(*_DIRECTION)
    if direction not in (_TO_SHARED, _TO_GLOBAL):
        return None
    is_load = direction == _TO_SHARED
    return BulkCopy(is_load, False, size, second if is_load else first, is_multicast=is_multicast)


def mnemonic(word: Word, arch: int) -> str:
    """``LDG.64``, ``HMMA``, ``BAR``; ``0x98f`` for what has no name here."""
    name = _ACCESS_NAMES.get(word.operation)
    if name is None:
        copy = bulk_copy_of(word, arch)
        return (operation_name(word, arch) or f"{word.opcode:#05x}") + ("" if copy is None else copy.suffix)
    if word.operation in RED and arch < _GLOBAL_FROM:
        name = "RED"
    access = known_access(word, arch)
    return name + ("" if access is None else (_WIDE_SUFFIXES | _NARROW_SUFFIXES).get(access.bytes, ""))


# Kernels whose blocks may wait for one another, recognised by their SASS.
#
# A block observes another one by reading memory in an order that the hardware keeps: by a strong load, by an
# atomic operation that returns what was there, or by any load behind a fence. Without any of these blocks
# cannot wait, and run one after another as well as at the same time. Blocks of a cluster may: they start
# together, always.

_LOAD_OPERATIONS: Final = frozenset({"LD", "LDG"})
_ORDERING_OPERATIONS: Final = frozenset({"ATOM", "ATOMG", "LDGMC", "MEMBAR", "ERRBAR", "CCTL"})
_LEADS_AWAY: Final = frozenset({0x143, 0x14A, 0x14B, 0x153})
"""CALL.ABS, JMP, JMX, JMXU: code that is not looked at."""
_ORDER_FIELD: Final = (77, 4)
_WEAK_ORDER: Final = frozenset({0, 4})
"""Weak, and of memory that no one writes. Strong loads are 5, 7 and 10 (block, GPU, system), of mapped devices 12: so
nvdisasm reads them for sm_80, sm_90, sm_100 and sm_120.
"""


def blocks_may_wait(words: Iterable[Word], arch: int) -> bool:
    """Return whether anything in a kernel's code tells a block what others do; True for what is not known, too."""
    return any(_may_signal(word, arch) for word in words if not word.never_runs)


def is_strong_load(word: Word, arch: int) -> bool:
    """Return whether a load sees what others store: one that is volatile, relaxed or acquires."""
    return operation_name(word, arch) in _LOAD_OPERATIONS and word.field(*_ORDER_FIELD) not in _WEAK_ORDER


def _may_signal(word: Word, arch: int) -> bool:
    name = operation_name(word, arch)
    if name in _LOAD_OPERATIONS:
        return is_strong_load(word, arch)
    return not name or name in _ORDERING_OPERATIONS or word.operation in _LEADS_AWAY

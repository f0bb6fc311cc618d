"""Operations of SASS: names, classes of work, multiply-adds of matrix products.

The classes are those of PTX (``ptx/instruction_facts.py``), so that a probe of ``block.fp32`` means the same. Other
than there every instruction is one that is issued, the moves and loads of constants among ``other``, too. The names are
those of nvdisasm for sm_80 to sm_120; ``python -m tests.bench.sass_operations`` looks for others in libraries.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import accesses
from tui_probe.sass.accesses import ATOM, ATOMG, RED, atomic_of
from tui_probe.sass.bulk_copies import bulk_copy_of

if TYPE_CHECKING:
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
"""Operations that were reused: the earlier name, the first architecture of the later one, and that."""
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
"""Loads through textures: the class is the same for all, and the names are not needed."""
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
    _DMMA: ((77, 76), {(0, 0): 8 * 8 * 4, (0, 1): 16 * 8 * 4, (1, 0): 16 * 8 * 8, (1, 1): 16 * 8 * 16}),
    _QMMA: ((75,), {(0,): 16 * 8 * 16, (1,): 16 * 8 * 32}),
}
"""Bits that select a shape, and the multiply-adds (m * n * k) of each combination, by operation."""
PRODUCT_NAMES: Final = {
    _HMMA: "HMMA", _IMMA: "IMMA", _BMMA: "BMMA", _DMMA: "DMMA", _QMMA: "QMMA",
    0x1F0: "HGMMA", 0x1F1: "IGMMA", 0x1F2: "BGMMA", 0x1F3: "QGMMA",
}  # fmt: skip
_WARPGROUP: Final = 128
"""Threads of a warp group: four warps, which execute one HGMMA together."""
_WARPGROUP_M: Final = 64
"""Rows of the result of every warp group product; its columns are a field of the instruction, in units of 8, less 1."""
_GROUP_N_AT, _GROUP_N_BITS, _GROUP_N_UNIT = 53, 5, 8
_HGMMA, _QGMMA = 0x1F0, 0x1F3
_UNKNOWN_PRODUCTS: Final = frozenset({0x1F1, 0x1F2})
"""IGMMA, BGMMA: products whose shapes are not decoded here, so that probes of multiply-adds refuse them."""
_NEVER_SET: Final = {_IMMA: (73, 77, 79)}
"""Bits that are clear in every known shape: one that is set means an unknown shape."""
_TF32: Final = 58
"""Bit of HGMMA that is set if its numbers are TF32."""
PRODUCT_OPERATIONS: Final = frozenset({*_SHAPES, _HGMMA, _QGMMA}) | _UNKNOWN_PRODUCTS
_WIDE_DMMA: Final = 90
"""The architecture whose DMMA has several shapes; on others it is 8 × 8 × 4."""
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
    """Return the name up to the first dot, e.g. ``HFMA2``; "" for an unknown operation."""
    if word.operation in _CHANGED_NAMES:
        earlier_name, reused_from, later_name = _CHANGED_NAMES[word.operation]
        return later_name if arch >= reused_from else earlier_name
    return _OPERATION_NAMES.get(word.operation, "")


def operation_class(word: Word, arch: int) -> str:
    """Return the class of an instruction; ``other`` for an unknown one."""
    work = _CLASSES.get(operation_name(word, arch), "load" if word.operation in _TEXTURES else "other")
    is_bfloat = work == "fp16" and word.operation in _HALF_OPERATIONS and bool(word.field(_IS_BFLOAT, 1))
    return "bf16" if is_bfloat else work


class MatrixProduct(NamedTuple):
    """``share``: multiply-adds per lane. ``is_of_warpgroup``: the four warps of a warp group work together."""

    share: int
    is_of_warpgroup: bool


def matrix_product(word: Word, arch: int) -> MatrixProduct:
    """Return the product of one of ``PRODUCT_OPERATIONS``. Raises UnsupportedKernelError for an unknown shape."""
    if word.operation == _DMMA and arch != _WIDE_DMMA:
        return MatrixProduct(8 * 8 * 4 // _WARP, is_of_warpgroup=False)
    if word.operation in (_HGMMA, _QGMMA):
        n = (word.field(_GROUP_N_AT, _GROUP_N_BITS) + 1) * _GROUP_N_UNIT
        return MatrixProduct(_WARPGROUP_M * n * _group_k(word) // _WARPGROUP, is_of_warpgroup=True)
    bits, shapes = _SHAPES.get(word.operation, ((), {}))
    products = shapes.get(tuple(word.field(bit, 1) for bit in bits))
    if not products or any(word.field(bit, 1) for bit in _NEVER_SET.get(word.operation, ())):
        raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
    return MatrixProduct(products // _WARP, is_of_warpgroup=False)


def _group_k(word: Word) -> int:
    """Return the k of a product of a warp group: 32 bytes of factors."""
    if word.operation == _QGMMA:
        return 32
    return 8 if word.field(_TF32, 1) else 16


def known_access(word: Word, arch: int) -> MemoryAccess | None:
    """Return what an instruction accesses; None for one that accesses nothing, or of an unknown form."""
    try:
        return accesses.access_of(word, arch) or atomic_of(word, arch)
    except UnsupportedKernelError:
        return None


def mnemonic(word: Word, arch: int) -> str:
    """Return ``LDG.64``, ``HMMA``, ``BAR``; the opcode, ``0x98f``, of an instruction without a name here."""
    name = _ACCESS_NAMES.get(word.operation)
    if name is None:
        copy = bulk_copy_of(word, arch)
        return (operation_name(word, arch) or f"{word.opcode:#05x}") + ("" if copy is None else copy.suffix)
    if word.operation in RED and arch < _GLOBAL_FROM:
        name = "RED"
    access = known_access(word, arch)
    return name + ("" if access is None else (_WIDE_SUFFIXES | _NARROW_SUFFIXES).get(access.bytes, ""))

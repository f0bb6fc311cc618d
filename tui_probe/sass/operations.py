"""What kind of work an instruction of machine code is, by its operation: the nine bits that all its forms share.

The classes are those of PTX (``ptx/instruction_classes.py``), so that a probe of ``block.fp32`` means the same. Other
than there every instruction is one that is issued, the moves and loads of constants among ``other``, too. The names are
those of nvdisasm for sm_80 to sm_120; ``python -m tests.bench.sass_operations`` looks for others in libraries.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tui_probe.sass.words import Word

_NAMES: Final[dict[int, str]] = {
    int(number, 16): name
    for number, name in re.findall(
        r"(\w+):(\w+)",
        """
        001:PMTRIG 002:MOV 003:P2R 004:R2P 005:CS2R 006:VOTE 007:SEL 008:FSEL 009:FMNMX 00a:FSET 00b:FSETP 00c:ISETP
        00f:VIMNMX3 010:IADD3 011:LEA 012:LOP3 013:IABS 015:VABSDIFF4 016:PRMT 017:IMNMX 019:SHF 01a:SGXT 01b:BMSK
        01c:PLOP3 020:FMUL 021:FADD 023:FFMA 024:IMAD 025:IMAD 026:IDP 027:IMAD 028:DMUL 029:DADD 02a:DSETP 02b:DFMA
        02d:PREEXIT 02e:ACQBULK 02f:ELECT 030:HADD2 031:HFMA2 032:HMUL2 033:HSET2 034:HSETP2 036:VIADD 037:IMMA
        03b:LDSM 03c:HMMA 03d:BMMA 03e:F2FP 03f:DMMA 040:HMNMX2 043:F2IP 044:STSM 045:I2FP 046:VIADDMNMX 048:VIMNMX
        049:FFMA2 04b:FADD2 04c:UVIRTCOUNT 051:UFSEL 053:UFSETP 054:UFADD 055:UFFMA 056:UFMUL 05a:UI2F 05c:UF2I
        05e:UI2FP 076:FMNMX3 07a:QMMA 082:UMOV 083:UP2UR 085:UIMNMX 086:VOTEU 087:USEL 08c:UISETP 090:UIADD3
        091:ULEA 092:ULOP3 096:UPRMT 097:UIADD3 099:USHF 09a:USGXT 09c:UPLOP3 0a4:UIMAD 0a5:UIMAD 0a6:UIMAD 0b9:ULDC
        0bb:ULDC 0bd:UFLO 0bf:UPOPC 0ca:R2UR 0cb:CS2UR 0cc:CREDUX 100:FLO 101:BREV 102:FCHK 104:F2F 105:F2I 106:I2F
        107:FRND 108:MUFU 109:POPC 110:F2F 111:F2I 112:I2F 113:FRND 118:NOP 119:S2R 11a:DEPBAR 11b:ENDCOLLECTIVE
        11c:B2R 11d:BAR 141:BSYNC 142:BREAK 143:CALL 144:CALL 145:BSSY 146:YIELD 147:BRA 148:WARPSYNC 149:BRX
        14d:EXIT 14e:LEPC 150:RET 155:BMOV 156:BMOV 158:BRXU 15c:BPT 15d:NANOSLEEP 160:TEX 163:TLD4 166:TLD 180:LD
        181:LDG 182:LDC 183:LDL 184:LDS 185:ST 186:STG 187:STL 188:STS 189:SHFL 18a:ATOM 18b:ATOM 18c:ATOMS
        18d:ATOMS 18e:RED 18f:CCTL 192:MEMBAR 19d:SUST 1a1:MATCH 1a2:ATOM 1a3:ATOMG 1a4:LDGMC 1a5:LDGMC 1a6:REDG
        1a7:SYNCS 1a8:ATOMG 1a9:ATOMG 1aa:QSPC 1ab:ERRBAR 1ac:LDCU 1ae:LDGSTS 1af:LDGDEPBAR 1b0:ARRIVES 1b1:SYNCS
        1b2:SYNCS 1b4:UTMALDG 1b5:UTMASTG 1b6:UTMAREDG 1b7:UTMACMDFLUSH 1b9:UTMACCTL 1ba:UBLKCP 1bb:UBLKRED 1bd:STAS
        1c2:R2UR 1c3:S2UR 1c4:REDUX 1c5:WARPGROUP 1c6:FENCE 1c7:UCGABAR 1c8:USETMAXREG 1c9:USETSHMSZ
        1ca:UGETNEXTWORKID 1e3:UTCATOMSWS 1e9:UTCBAR 1ea:UTCIMMA 1ee:LDTM 1f0:HGMMA 1f1:IGMMA 1f2:BGMMA 1f3:QGMMA
        """,
    )
}
_CHANGED: Final = {0x035: ("HFMA2", 120, "IADD"), 0x04A: ("FMUL2", 120, "UVIMNMX")}
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
_HALF: Final = frozenset({0x030, 0x031, 0x032, 0x033, 0x034, 0x035, 0x040})
_IS_BFLOAT: Final = 85
_TEXTURES: Final = range(0x160, 0x178)
"""Loads through textures, whose names nobody needs here."""


def name_of(word: Word, arch: int) -> str:
    """The name up to the first dot, ``HFMA2``; "" for an operation that is not known."""
    if word.operation in _CHANGED:
        before, first, since = _CHANGED[word.operation]
        return since if arch >= first else before
    return _NAMES.get(word.operation, "")


def class_of(word: Word, arch: int) -> str:
    """The class of an instruction; ``other`` for one that is not known."""
    work = _CLASSES.get(name_of(word, arch), "load" if word.operation in _TEXTURES else "other")
    return "bf16" if work == "fp16" and word.operation in _HALF and word.field(_IS_BFLOAT, 1) else work

"""Machine code as nvdisasm prints it: instructions, their source lines, and how many there are of each class.

fp32 fp64 fp16   arithmetic and comparison in these types; MUFU and FCHK are fp32
integer          arithmetic, logic, shifts, comparison on integers, bits and predicates
tensor           HMMA, IMMA, DMMA, BMMA, and the matrix instructions of warp groups
load store       global, shared, constant and texture memory, copies into shared memory
local            loads and stores of local memory: the stack and spills
atomic           atomics and reductions
branch           jumps, calls, convergence barriers, exit
barrier          barriers between warps, fences, waiting for copies
special          reading special registers: indices, clocks
other            moves, conversions, shuffles, votes
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

CLASSES: Final = (
    "fp32", "fp64", "fp16", "integer", "tensor", "load", "store", "local", "atomic", "branch", "barrier", "special",
    "other",
)  # fmt: skip

_INSTRUCTION: Final = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*(?:/\*.*)?$")
_LABEL: Final = re.compile(r"^(\.L_\w+|[A-Za-z_$][\w$.]*):$")
_SOURCE: Final = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_BY_PATTERN: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"[HIDBQO]G?MMA|UTC\w*MMA", "tensor"),
        (r"LDL|STL", "local"),
        (r"ATOM|RED(?!UX)|UREDG|SUATOM|SURED", "atomic"),
        (r"LDGDEPBAR|DEPBAR|BAR|MEMBAR|ERRBAR|FENCE|SYNCS|WARPGROUP|ARRIVES|CCTL|UCGABAR|ACQBULK", "barrier"),
        (r"LD|ULDC|TEX|TLD|TXQ|SULD|UTMALDG|UBLKCP", "load"),
        (r"ST[GSE.]|ST$|STSM|STAS|SUST|UTMASTG", "store"),
        (r"BRA|BRX|BRXU|JMP|JMX|CALL|RET|EXIT|BSSY|BSYNC|BREAK|BMOV|WARPSYNC|YIELD|KILL|BPT|RPCMOV", "branch"),
        (r"CS2R|S2R|S2UR|CS2UR", "special"),
        (r"D(ADD|FMA|MUL|SETP|MNMX)", "fp64"),
        (r"H(ADD2|FMA2|MUL2|SET2|SETP2|MNMX2)", "fp16"),
        (r"F(ADD|FMA|MUL|SEL|SETP|SET|MNMX|CHK|SWZADD|RO)|MUFU|RRO", "fp32"),
        (r"U?(IADD3?|IMAD|ISETP|LEA|LOP3|LOP|SHF(?!L)|SHL|SHR|IABS|IMNMX|POPC|PRMT|BMSK|SGXT|FLO|BREV|IDP|ISCADD|VIADD"
         r"|VIMNMX|PLOP3|PSETP|P2R|R2P|IMUL|XMAD|VABSDIFF\d*)", "integer"),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Code:
    """``lines`` are instructions without their addresses, and labels; ``sources`` the source line of each, "" if none.

    ``addresses`` count from the start of the function, in bytes; a label has None.
    """

    lines: list[str]
    addresses: list[int | None]
    sources: list[str]
    counts: Counter[str]

    @property
    def total(self) -> int:
        """The number of instructions."""
        return self.counts.total()


def parse(text: str) -> Code:
    """The instructions and labels of a disassembly. Padding after the end of a function is left out."""
    lines: list[str] = []
    addresses: list[int | None] = []
    sources: list[str] = []
    source = ""
    for line in text.splitlines():
        if match := _SOURCE.match(line):
            source = f"{match[1].rpartition('/')[2]}:{match[2]}"
        elif match := _INSTRUCTION.match(line):
            lines.append("    " + match[2])
            addresses.append(int(match[1], 16))
            sources.append(source)
        elif match := _LABEL.match(line.strip()):
            lines.append(f"{match[1]}:")
            addresses.append(None)
            sources.append("")
    end = len(lines)
    while end and (lines[end - 1].strip() == "NOP" or lines[end - 1].endswith(":")):
        end -= 1
    del lines[end:], addresses[end:], sources[end:]
    return Code(lines, addresses, sources, count(lines))


def count(lines: Iterable[str]) -> Counter[str]:
    """How many instructions there are of each class."""
    return Counter(name for line in lines if (name := class_of_line(line)) is not None)


@lru_cache(maxsize=65536)
def class_of_line(line: str) -> str | None:
    """The class of a line of ``Code``; None for a label."""
    words = line.split()
    if not line.startswith(" ") or not words:
        return None
    return class_of(words[1] if words[0].startswith("@") and len(words) > 1 else words[0])


def class_of(opcode: str) -> str:
    """The class of an instruction by its opcode, such as ``LDG.E.128``."""
    return next((name for pattern, name in _BY_PATTERN if pattern.match(opcode)), "other")

"""Registers of a thread by kernel: the count in its cubin, or an estimate from its PTX.

``.nv.info`` is a list of attributes: u8 format, u8 attribute, u16 size, then that many bytes. The register count
(attribute 0x2f, format 4) is u32 symbol index, u32 registers. ``cuobjdump -elf`` prints it as EIATTR_REGCOUNT.

The simulated GPU allocates no registers, but programs choose launch shapes by their number. The estimate is the largest
number of 32-bit registers that hold a value between its first and its last mention, loops counted as a whole, and a few
for addresses and the ABI. It is half to twice of what ptxas takes for the kernels of the test corpus.
"""

from __future__ import annotations

import re
import struct
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from tui_probe.binaries import elf
from tui_probe.ptx.lexer import NAME
from tui_probe.ptx.references import references
from tui_probe.ptx.tree import Instruction, Label, Symbol, Variable, statements_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.ptx.tree import Function, Module, Statement

_REGISTER_COUNT: Final = 0x2F
"""EIATTR_REGCOUNT."""
_SIZED_VALUE: Final = 0x04
"""EIFMT_SVAL: a size of 16 bits and that many bytes follow."""
_ATTRIBUTE_HEAD: Final = struct.Struct("<BBH")
_SYMBOL_COUNT: Final = struct.Struct("<II")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
"""An entry of ``.symtab``, whose first field is the place of the name in ``.strtab``."""
_NAME: Final = re.compile(NAME)
_NUMBERED_NAME: Final = re.compile(r"(.*?)\d+\Z", re.DOTALL)
_RESERVED_REGISTERS: Final = 6
"""Registers for addresses, the stack and what an instruction needs on the way."""
_MIN_REGISTERS: Final = 8
"""Devices give out registers in units of 8 per thread."""
_MAX_REGISTERS: Final = 255
"""Registers that an instruction can name: of 8 bits the number 255 reads as 0."""
_WIDTHS: Final = {"64": 2, "128": 4}
"""Registers of 32 bits that one of more bits takes."""


def register_counts(image: bytes) -> dict[str, int]:
    """Registers of a thread of each kernel, by name; empty for anything but a cubin. Raises ImageError."""
    if not image.startswith(elf.MAGIC):
        return {}
    sections = elf.Sections(image)
    names = _symbol_names(sections.get(".symtab", b""), sections.get(".strtab", b""))
    info = sections.get(".nv.info", b"")
    counts = {}
    position = 0
    while position + _ATTRIBUTE_HEAD.size <= len(info):
        form, attribute, size = _ATTRIBUTE_HEAD.unpack_from(info, position)
        position += _ATTRIBUTE_HEAD.size
        content = info[position : position + size] if form == _SIZED_VALUE else b""
        position += len(content)
        if attribute == _REGISTER_COUNT and len(content) == _SYMBOL_COUNT.size:
            symbol, count = _SYMBOL_COUNT.unpack(content)
            if symbol < len(names):
                counts[names[symbol]] = count
    return counts


def _symbol_names(table: bytes, strings: bytes) -> list[str]:
    """The names of an ELF file's symbols, by index."""
    entries = table[: len(table) // _SYMBOL.size * _SYMBOL.size]
    name_offsets = [fields[0] for fields in _SYMBOL.iter_unpack(entries)]
    return [strings[start : strings.find(b"\0", start)].decode("utf-8", "replace") for start in name_offsets]


def estimate_registers(module: Module, kernel: Function) -> int:
    """The estimate for a kernel and the functions that it needs. Raises PtxError for a damaged body."""
    names = references(module, kernel)
    callees = [callee for callee in module.functions() if callee.name in names and callee.body_span is not None]
    count = _max_pressure(kernel, module.source) + max(
        (_max_pressure(callee, module.source) for callee in callees), default=0
    )
    declared = re.search(r"\d+", kernel.attributes.get("maxnreg", ""))
    limit = min(int(declared[0]), _MAX_REGISTERS) if declared else _MAX_REGISTERS
    return min(max(count + _RESERVED_REGISTERS, _MIN_REGISTERS), limit)


def _max_pressure(function: Function, source: str) -> int:
    """The most 32-bit registers in use at the same time."""
    statements = list(statements_in(function.body or ()))
    widths = _widths(statements)
    ranges = _live_ranges(statements, widths, source)
    for loop_start, loop_end in _loops(statements):
        for name, (start, end) in ranges.items():
            if start < loop_start <= end < loop_end:
                ranges[name] = (start, loop_end)
    changes = [0] * (len(statements) + 1)
    for name, (start, end) in ranges.items():
        changes[start] += widths[_stem(name, widths)]
        changes[end] -= widths[_stem(name, widths)]
    return max(accumulate(changes))


def _widths(statements: Iterable[Statement]) -> dict[str, int]:
    """Return the 32-bit registers that each register takes, by its name or the stem of its number; predicates are left
    out.
    """
    counts = {}
    for node in statements:
        if isinstance(node, Variable) and node.space == "reg" and node.type != "pred":
            bits = re.sub(r"\D", "", node.type.partition("x")[0])
            counts[node.name] = _WIDTHS.get(bits, 1) * node.vector
    return counts


def _stem(name: str, widths: Mapping[str, int]) -> str:
    match = _NUMBERED_NAME.match(name)
    return name if name in widths or match is None else match[1]


def _live_ranges(statements: Sequence[Statement], widths: Mapping[str, int], source: str) -> dict[str, tuple[int, int]]:
    """Return the first and last mention of each register, by name, as positions in ``statements``."""
    ranges: dict[str, tuple[int, int]] = {}
    for index, node in enumerate(statements):
        if isinstance(node, Instruction):
            for name in _NAME.findall(source, node.span.start, node.span.end):
                if _stem(name, widths) in widths:
                    ranges[name] = (ranges.get(name, (index, index))[0], index)
    return ranges


def _loops(statements: Sequence[Statement]) -> list[tuple[int, int]]:
    """Return the loops, from each label to each later branch that leads there, inner loops first."""
    labels = {node.name: index for index, node in enumerate(statements) if isinstance(node, Label)}
    candidates = [
        (labels[operand.name], index)
        for index, node in enumerate(statements)
        if isinstance(node, Instruction) and node.opcode == "bra"
        for operand in node.operands
        if isinstance(operand, Symbol) and labels.get(operand.name, index) < index
    ]
    return sorted(candidates, key=lambda loop: loop[1] - loop[0])

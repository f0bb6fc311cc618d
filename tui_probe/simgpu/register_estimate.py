"""An estimate of the registers of a thread, for kernels of which there is PTX alone.

The simulated GPU allocates no registers, but programs choose launch shapes by their number. The estimate is the largest
number of 32-bit registers that hold a value between its first and its last mention, loops counted as a whole, and a few
for addresses and the ABI. It is half to twice of what ptxas takes for the kernels of the test corpus.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instructions import statements_in
from tui_probe.ptx.lexer import NAME
from tui_probe.ptx.references import references
from tui_probe.ptx.tree import Function, Instruction, Label, Symbol, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tui_probe.ptx.tree import Module, Statement

_NAME: Final = re.compile(NAME)
_NUMBERED: Final = re.compile(r"(.*?)\d+\Z", re.DOTALL)
_FIXED: Final = 6
"""Registers for addresses, the stack and what an instruction needs on the way."""
_FEWEST: Final = 8
_MOST: Final = 255
_WIDTHS: Final = {"64": 2, "128": 4}


def estimate_registers(module: Module, kernel: Function) -> int:
    """The estimate for a kernel and the functions that it needs. Raises PtxError for a damaged body."""
    names = references(module, kernel)
    called = [one for one in module.functions() if one.name in names and one.body_span is not None]
    needed = _pressure(kernel, module.source) + max((_pressure(one, module.source) for one in called), default=0)
    limit = re.search(r"\d+", kernel.attributes.get("maxnreg", ""))
    return min(max(needed + _FIXED, _FEWEST), int(limit[0]) if limit else _MOST, _MOST)


def _pressure(function: Function, source: str) -> int:
    """The most 32-bit registers in use at once."""
    statements = list(statements_in(function.body or ()))
    widths = _widths(statements)
    ranges = _ranges(statements, widths, source)
    for first, last in _loops(statements):
        for name, (begin, end) in ranges.items():
            if begin < first <= end < last:
                ranges[name] = (begin, last)
    changes = [0] * (len(statements) + 1)
    for name, (begin, end) in ranges.items():
        changes[begin] += widths[_stem(name, widths)]
        changes[end] -= widths[_stem(name, widths)]
    return max(accumulate(changes))


def _widths(statements: Iterable[Statement]) -> dict[str, int]:
    """By the name of a register, or what stands before its number, how many of 32 bits it takes; predicates none."""
    found = {}
    for node in statements:
        if isinstance(node, Variable) and node.space == "reg" and node.type != "pred":
            bits = re.sub(r"\D", "", node.type.partition("x")[0])
            found[node.name] = _WIDTHS.get(bits, 1) * node.vector
    return found


def _stem(name: str, widths: Mapping[str, int]) -> str:
    match = _NUMBERED.match(name)
    return name if name in widths or match is None else match[1]


def _ranges(statements: Sequence[Statement], widths: Mapping[str, int], source: str) -> dict[str, tuple[int, int]]:
    """By name, where each register is mentioned first and last, as places in ``statements``."""
    found: dict[str, tuple[int, int]] = {}
    for place, node in enumerate(statements):
        if isinstance(node, Instruction):
            for name in _NAME.findall(source, node.span.start, node.span.end):
                if _stem(name, widths) in widths:
                    found[name] = (found.get(name, (place, place))[0], place)
    return found


def _loops(statements: Sequence[Statement]) -> list[tuple[int, int]]:
    """From each label to each branch behind it that leads there, inner loops first."""
    labels = {node.name: place for place, node in enumerate(statements) if isinstance(node, Label)}
    found = [
        (labels[operand.name], place)
        for place, node in enumerate(statements)
        if isinstance(node, Instruction) and node.opcode == "bra"
        for operand in node.operands
        if isinstance(operand, Symbol) and labels.get(operand.name, place) < place
    ]
    return sorted(found, key=lambda loop: loop[1] - loop[0])

"""Phases that a kernel marks itself: ``pmevent N`` begins phase ``pmevent N``, which lasts until the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.tree import Immediate

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ptx.control_flow import Flow
    from tui_probe.ptx.tree import Instruction

MARK: Final = "pmevent"
_DIFFERS: Final = ""
"""Name of code that is reached behind several marks."""


def marked_phases(flow: Flow) -> Callable[[Instruction], str | None] | None:
    """Return a function that names the phase of an instruction, "" for none; None if the code has no marks."""
    if not any(instruction.opcode == MARK for block in flow.blocks for instruction in block):
        return None
    last = [next((_name(own) for own in reversed(block) if own.opcode == MARK), None) for block in flow.blocks]
    begins = _names_at_starts(flow, last)
    names: dict[int, str] = {}
    for block, name in zip(flow.blocks, begins, strict=True):
        current = name or _DIFFERS
        for instruction in block:
            current = _name(instruction) if instruction.opcode == MARK else current
            names[id(instruction)] = current
    return lambda instruction: names[id(instruction)]


def _names_at_starts(flow: Flow, last: list[str | None]) -> list[str | None]:
    """The name at the start of each block: that of all ways to it, None for one that is not reached."""
    begins: list[str | None] = [_DIFFERS, *[None] * (len(flow.blocks) - 1)]
    waiting = [0]
    while waiting:
        block = waiting.pop()
        ends = last[block] if last[block] is not None else begins[block]
        for target in flow.successors(block):
            joined = ends if begins[target] in (None, ends) else _DIFFERS
            if joined != begins[target]:
                begins[target] = joined
                waiting.append(target)
    return begins


def _name(mark: Instruction) -> str:
    operands = [operand.text for operand in mark.operands if isinstance(operand, Immediate)]
    return " ".join([".".join((mark.opcode, *mark.modifiers)), *operands])

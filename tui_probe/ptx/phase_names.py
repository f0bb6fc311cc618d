"""Names of phases: the kind of work of an instruction, by which phases are cut, and marks that users put in code.

``pmevent N`` begins phase ``pmevent N``, which lasts until the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instruction_facts import class_of
from tui_probe.ptx.operands import parse_integer
from tui_probe.ptx.tree import Immediate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.ptx.control_flow import Flow
    from tui_probe.ptx.tree import Instruction

INTEGER: Final = "integer"
"""Work of a stretch that computes addresses, indices and conditions, between work of other kinds."""
OTHER: Final = "other"
"""Work of a stretch without an instruction that names it."""
BARRIER, NAMED_BARRIER, POLLING = "barrier wait", "named barrier wait", "polling wait"
WAITS: Final = (
    "mbarrier wait", "copy wait", "wgmma wait", BARRIER, NAMED_BARRIER, "cluster barrier wait", POLLING, "grid wait",
)  # fmt: skip
"""A polling wait is a loop that reads global memory until it changes: a barrier of the grid, or a lock."""
COPIES: Final = ("bulk copy", "async copy")
LOADS: Final = (*COPIES, "global load")
ACCESSES: Final = (*LOADS, "global store")
"""Works that access global memory."""
PRODUCTS: Final = "mma"
COMPUTES: Final = (PRODUCTS, "exponential", "reduction", "compute")
TILE_REQUEST: Final = "tile request"
"""Asks the hardware for the next block of a persistent kernel."""
WEIGHTS: Final = {
    **dict.fromkeys(WAITS, 16),
    "bulk copy": 16, "async copy": 4, "global load": 4, "shared store": 2, PRODUCTS: 16, "exponential": 4,
    "reduction": 4, "global store": 4, TILE_REQUEST: 16, "compute": 1,
}  # fmt: skip
"""Issue slots of an instruction of each kind, roughly: they decide which kind dominates."""
KINDS: Final = (*WEIGHTS, INTEGER, OTHER)
"""Kinds of work that name a phase where the user does not."""
_ARITHMETIC: Final = frozenset({"fp32", "fp64", "fp16", "bf16"})
MARK: Final = "pmevent"
_DIFFERS: Final = ""
"""Name of code that is reached behind several marks."""


def work_of(instruction: Instruction) -> str | None:
    """Return the kind of work of an instruction; None for one that is part of any work."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if (wait := _wait_of(instruction)) is not None:
        return wait
    match opcode:
        case "cp":
            return _copy_work(modifiers)
        case "mma" | "wmma" | "wgmma" | "tcgen05":
            return PRODUCTS if {"mma", "mma_async", "fence", "commit_group"} & {opcode, *modifiers} else None
        case "clusterlaunchcontrol":
            return TILE_REQUEST
        case "ld" | "ldu" if "global" in modifiers:
            return "global load"
        case "st" | "red" | "atom" if "global" in modifiers:
            return "global store"
        case "st" | "stmatrix" if opcode == "stmatrix" or any(name.startswith("shared") for name in modifiers):
            return "shared store"
        case "ex2" | "lg2" | "tanh":
            return "exponential"
        case "shfl" | "redux":
            return "reduction"
    return "compute" if class_of(instruction) in _ARITHMETIC else None


def _wait_of(instruction: Instruction) -> str | None:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    waits = any(name.startswith(("wait", "try_wait", "test_wait")) for name in modifiers)
    match opcode:
        case "mbarrier" if waits:
            return "mbarrier wait"
        case "cp" if waits:
            return "copy wait"
        case "wgmma" | "tcgen05" if waits:
            return "wgmma wait"
        case "griddepcontrol" if waits:
            return "grid wait"
        case "bar" | "barrier" if "warp" not in modifiers and (waits or {"sync", "red"} & set(modifiers)):
            if "cluster" in modifiers:
                return "cluster barrier wait"
            return NAMED_BARRIER if _is_named(instruction) else BARRIER
    return None


def _is_named(barrier: Instruction) -> bool:
    """Return whether a barrier is not number 0, which all warps of a block meet at."""
    first = next(iter(barrier.operands), None)
    return first is not None and not (isinstance(first, Immediate) and parse_integer(first.text) == 0)


def _copy_work(modifiers: Sequence[str]) -> str | None:
    if "commit_group" in modifiers or "mbarrier" in modifiers or "prefetch" in modifiers:
        return None
    to_global = next((name for name in modifiers if name.startswith(("global", "shared"))), "") == "global"
    return "global store" if to_global else "bulk copy" if "bulk" in modifiers else "async copy"


def marked_phases(flow: Flow) -> Callable[[Instruction], str | None] | None:
    """Return a function that names the phase of an instruction, "" for none; None if the code has no marks."""
    if not any(instruction.opcode == MARK for block in flow.blocks for instruction in block):
        return None
    last = [next((_mark_name(own) for own in reversed(block) if own.opcode == MARK), None) for block in flow.blocks]
    begins = _names_at_starts(flow, last)
    names: dict[int, str] = {}
    for block, name in zip(flow.blocks, begins, strict=True):
        current = name or _DIFFERS
        for instruction in block:
            current = _mark_name(instruction) if instruction.opcode == MARK else current
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


def _mark_name(mark: Instruction) -> str:
    operands = [operand.text for operand in mark.operands if isinstance(operand, Immediate)]
    return " ".join([".".join((mark.opcode, *mark.modifiers)), *operands])

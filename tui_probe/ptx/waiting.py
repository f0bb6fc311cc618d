"""Whether blocks of a kernel may wait for one another, by its PTX: see :mod:`tui_probe.sass.waiting`.

PTX orders memory with strong operations and fences (PTX ISA reference, "Memory Consistency Model"); loads that bypass
the caches of an SM (``.cg``, ``.cv``) are taken for such, since older code waits with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instructions import instructions_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.ptx.tree import Function, Instruction

_STRONG: Final = frozenset({"volatile", "relaxed", "acquire", "mmio", "cg", "cv"})
_OF_BLOCK: Final = frozenset({"shared", "shared::cta", "shared::cluster", "local", "param", "const"})
_OF_PROXIES: Final = frozenset({"proxy", "mbarrier_init"})
"""Fences that order a block's own accesses of different kinds."""


def blocks_may_wait(functions: Iterable[Function]) -> bool:
    """Whether anything in a kernel, or in the functions that it calls, tells a block what others do.

    A call through an address, or of a function that has no body, may.
    """
    known = list(functions)
    bodies = {function.name for function in known if function.body is not None}
    return any(_tells(one, bodies) for function in known for one in instructions_in(function.body or ()))


def _tells(instruction: Instruction, bodies: set[str]) -> bool:
    modifiers = {*instruction.modifiers}
    match instruction.opcode:
        case "ld":
            return bool(modifiers & _STRONG) and not modifiers & _OF_BLOCK
        case "atom":
            return not modifiers & _OF_BLOCK
        case "membar" | "multimem":
            return True
        case "fence":
            return not any(part in _OF_PROXIES for each in modifiers for part in each.split("::"))
        case "call":
            return not any(getattr(operand, "name", None) in bodies for operand in instruction.operands)
    return False

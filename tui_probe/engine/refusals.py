"""Kernels that a probe is not put into, since it would miss something there or could not work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import BLOCK, Level
from tui_probe.engine.positions import matches
from tui_probe.engine.walk import instructions
from tui_probe.errors import UnsupportedKernelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.model import Position, Probe
    from tui_probe.ptx.tree import Function, Module

_ACTIVEMASK_VERSION: Final = (6, 2)


def refuse_unsupported(kernel: Kernel, probe: Probe) -> None:
    """Raise UnsupportedKernelError, with line and what to write instead, for a kernel that ``probe`` cannot be in."""
    _refuse_module(kernel.module, probe)
    positions = [position for point in probe.points for position in point.positions]
    for function in kernel.functions:
        _refuse_function(function, positions)


def _refuse_module(module: Module, probe: Probe) -> None:
    if module.address_size != 64:
        raise UnsupportedKernelError("the PTX has 32-bit addresses", instead="compile for 64 bits")
    if any(own_map.level is not Level.THREAD for own_map in probe.maps) and module.version < _ACTIVEMASK_VERSION:
        version = ".".join(map(str, module.version))
        raise UnsupportedKernelError(
            f"PTX version {version} has no activemask, which one record a warp or site needs (6.2)",
            instead="compile with CUDA 9.2 or newer, or give the map level = 'thread'",
        )


def _refuse_function(function: Function, positions: Sequence[Position]) -> None:
    """A function that is called has no parameters for the maps: nothing in it can be probed."""
    inline = f"have {function.name} inlined (__forceinline__)"
    if function.body and any(position.opcode == BLOCK for position in positions):
        raise UnsupportedKernelError(
            f"function {function.name}, which is called, has blocks of its own", function.span.line, inline
        )
    for instruction in instructions(function):
        line = instruction.span.line
        if instruction.opcode == "exit" and any(position.is_kernel for position in positions):
            instead = f"return from {function.name}, and leave in the kernel"
            raise UnsupportedKernelError(f"function {function.name} ends the kernel with exit", line, instead)
        if any(matches(position, instruction) for position in positions):
            raise UnsupportedKernelError(
                f"function {function.name}, which is called, holds {instruction.opcode}", line, inline
            )

"""Kernels that a probe is not put into, since it would miss something there or could not work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import BLOCK, Level
from tui_probe.engine.positions import matches
from tui_probe.engine.walk import instructions
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.model import Position, Probe
    from tui_probe.ptx.tree import Function, Module

_ACTIVEMASK_VERSION: Final = (6, 2)


def refuse_unsupported(kernel: Kernel, probe: Probe) -> None:
    """Raise UnsupportedKernelError, with its line, for a kernel that ``probe`` cannot be in."""
    _refuse_module(kernel.module, probe)
    positions = [position for point in probe.points for position in point.positions]
    for function in kernel.functions:
        _refuse_function(function, positions)


def _refuse_module(module: Module, probe: Probe) -> None:
    if module.address_size != 64:
        raise UnsupportedKernelError(because("ptx-32-bit"))
    if any(own_map.level is not Level.THREAD for own_map in probe.maps) and module.version < _ACTIVEMASK_VERSION:
        version = ".".join(map(str, module.version))
        raise UnsupportedKernelError(because("no-activemask", version=version))


def _refuse_function(function: Function, positions: Sequence[Position]) -> None:
    """A function that is called has no parameters for the maps: nothing in it can be probed."""
    if function.body and any(position.opcode == BLOCK for position in positions):
        raise UnsupportedKernelError(because("function-blocks", line=function.span.line, function=function.name))
    for instruction in instructions(function):
        line = instruction.span.line
        if instruction.opcode == "exit" and any(position.is_kernel for position in positions):
            raise UnsupportedKernelError(because("function-exits", line=line, function=function.name))
        if any(not position.is_source and matches(position, instruction) for position in positions):
            raise UnsupportedKernelError(
                because("function-called", line=line, function=function.name, opcode=instruction.opcode)
            )

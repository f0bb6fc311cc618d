"""Kernels that a probe is not put into, since it would miss something there or could not work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.engine.model import Level
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because

if TYPE_CHECKING:
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.model import Probe
    from tui_probe.ptx.tree import Module

_ACTIVEMASK_VERSION: Final = (6, 2)


def refuse_unsupported(kernel: Kernel, probe: Probe) -> None:
    """Raise UnsupportedKernelError, with its line, for a kernel that ``probe`` cannot be in."""
    _refuse_module(kernel.module, probe)


def _refuse_module(module: Module, probe: Probe) -> None:
    if module.address_size != 64:
        raise UnsupportedKernelError(because("ptx-32-bit"))
    if any(own_map.level is not Level.THREAD for own_map in probe.maps) and module.version < _ACTIVEMASK_VERSION:
        version = ".".join(map(str, module.version))
        raise UnsupportedKernelError(because("no-activemask", version=version))

"""What pages say of a kernel that has machine code and no PTX: that, and where its code is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.pages.machine_code import has_both, has_original

if TYPE_CHECKING:
    from tui_probe.trace.model import Kernel

_TEXTS: Final = ("original.ptx", "pruned.ptx", "probed.ptx")
SEE: Final = "the page SASS shows its machine code"


def machine_code_alone(kernel: Kernel) -> bool:
    """Is there machine code of a kernel in the trace, and no PTX?"""
    return not any(kernel.file(name) for name in _TEXTS) and (has_both(kernel) or has_original(kernel))


def why_no_ptx(kernel: Kernel, otherwise: str) -> str:
    """Why there is no PTX to show, and where else to look: ``otherwise`` where no more is known."""
    if not machine_code_alone(kernel):
        return kernel.reason or otherwise
    if kernel.status == "probed":
        return f"it was probed in its machine code and has no PTX: {SEE}"
    return f"{kernel.reason or otherwise}; {SEE}"

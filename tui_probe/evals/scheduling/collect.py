"""What is run: a fill of 32 MiB by a plain and by a persistent kernel, probed, and all ways to fill, timed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

if TYPE_CHECKING:
    from tui_probe.evals.evaluation import Setting

_ALL: Final = ("plain", "memset", "persistent")
_KERNELS: Final = "fill_:FillFunctor"
_BUDGETS: Final = ("--no-source", "--max-trace-bytes", "64M", "--max-log-bytes", "1M")


def collect(setting: Setting) -> list[Collection]:
    """A trace for each kernel, and one whose program tells the durations of what ran unprobed.

    The driver's own fill is no launch that a hook sees, so it has a duration alone.
    """
    small = ("--elements", str(1 << 14), "--driver-only") if setting.simulated else ()
    program = (PYTHON, f"{PROGRAMS}/fill.py", *small)
    probed = ("-p", "block_sched", "-k", _KERNELS, "--launches", "all", "--no-times", *_BUDGETS)
    unprobed = ("-p", "block_sched", "-k", "no kernel of this name", "--launches", "0", "--no-times", *_BUDGETS)
    times = "4" if setting.simulated else "100"
    # PyTorch chooses the grid of its fill by the GPU; ours has that of the published one, and needs no PyTorch.
    own = (
        ()
        if setting.simulated
        else (Collection("plain_ptx", (*program, "--driver-only", "--times", "0", "plain"), probed),)
    )
    return [
        *(Collection(name, (*program, "--times", "0", name), probed) for name in ("plain", "persistent")),
        *own,
        Collection("durations", (*program, "--times", times, *_ALL), unprobed),
    ]

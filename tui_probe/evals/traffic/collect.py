"""What is run: each way of attention under ncu, which reads the bytes of each level of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

if TYPE_CHECKING:
    from tui_probe.evals.evaluation import Setting

WAYS: Final = ("flash", "efficient", "math", "triton", "bigbird_torch", "bigbird_triton")
SPARSE: Final = ("bigbird_torch", "bigbird_triton")
"""Those that attend to some blocks of keys alone, and so compare with each other alone."""
WARM_UP, RUNS = 3, 5
"""Calls of the programs."""
_METRICS: Final = "dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum,gpu__time_duration.sum"


def collect(setting: Setting) -> list[Collection]:
    """A table of ncu for each way; there is none of the simulated GPU."""
    return [
        Collection(
            way, (PYTHON, f"{PROGRAMS}/attentions.py", way), ("--ncu", _METRICS),
            modules=("torch", "triton"), tools=("ncu",), gpu=True, keeps="ncu",
        )
        for way in (WAYS[:1] if setting.simulated else WAYS)
    ]  # fmt: skip

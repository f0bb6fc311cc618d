"""What is run: each model once with each probe, sized and not probed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

if TYPE_CHECKING:
    from tui_probe.evals.evaluation import Setting

PROBES: Final = ("block_sched", "gmem_bytes", "tensorop_count", "dmat")
MODELS: Final = (
    "resnet-bs32", "sd-bs1", "mamba-bs32", "llama1b-bs32", "llama3b-bs32", "llama8b-bs32", "llama8b-bs128",
    "llama8b-bs256",
)  # fmt: skip
"""Of the published figure: the name and the batch."""
_SIZED: Final = ("--memusage", "--launches", "all", "--no-times", "--no-source", "--max-trace-bytes", "64M",
                 "--max-log-bytes", "16M")  # fmt: skip


def collect(setting: Setting) -> list[Collection]:
    """A trace for each model and probe, named ``MODEL.PROBE``; only the pass after warming up is sized."""
    if setting.simulated:
        small = (PYTHON, f"{PROGRAMS}/fill.py", "--elements", str(1 << 14), "--driver-only", "--times", "0", "plain")
        return [Collection(f"fill.{probe}", small, ("-p", probe, *_SIZED)) for probe in PROBES]
    return [
        Collection(
            f"{model}.{probe}",
            (PYTHON, f"{PROGRAMS}/models.py", model),
            ("-p", probe, "--capture-range", *_SIZED),
            modules=("torch", "triton"),
            gpu=True,
        )
        for model in MODELS
        for probe in PROBES
    ]

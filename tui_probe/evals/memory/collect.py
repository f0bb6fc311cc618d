"""What is run: each model once, its launches sized for all probes, and none probed."""

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
                 "--max-log-bytes", "4M")  # fmt: skip


def collect(setting: Setting) -> list[Collection]:
    """A trace for each model, with all probes by turns; only the passes after the first, which compiles, are sized."""
    probes = tuple(word for probe in PROBES for word in ("-p", probe))
    if setting.simulated:
        small = ("--elements", str(1 << 14), "--driver-only", "--times", str(len(PROBES)), "plain")
        return [Collection("fill", (PYTHON, f"{PROGRAMS}/fill.py", *small), (*probes, *_SIZED))]
    return [
        Collection(
            model,
            (PYTHON, f"{PROGRAMS}/models.py", model),
            (*probes, "--capture-range", *_SIZED),
            modules=("torch", "triton"),
            gpu=True,
        )
        for model in MODELS
    ]

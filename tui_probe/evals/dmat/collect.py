"""What is run: attention of one shape, by Triton in two configurations and by PyTorch's two back ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

if TYPE_CHECKING:
    from tui_probe.evals.evaluation import Setting

_SMALL: Final = ("--batch", "1", "--heads", "2", "--length", "256")
_OPTIONS: Final = (
    "-p", "dmat", "--launches", "0", "--sample", "1/16", "--tensors", "--no-source", "--max-trace-bytes", "4G",
    "--max-result-files", "1", "--max-probe-memory", "16G", "--max-host-memory", "4G", "--max-write-rate", "none",
)  # fmt: skip
"""The first launch; a block in 16 shows the same walk in a sixteenth of the space."""


def collect(setting: Setting) -> list[Collection]:
    """Four traces. Programs need PyTorch, so that nothing of this runs on the simulated GPU."""
    size = _SMALL if setting.simulated else ()
    program = (PYTHON, f"{PROGRAMS}/attention.py", *size)
    runs = {
        "triton-128x64": ("_attn_fwd", ("triton", "--block-m", "128", "--block-n", "64", "--warps", "8")),
        "triton-64x64": ("_attn_fwd", ("triton", "--block-m", "64", "--block-n", "64", "--warps", "4")),
        "flash": ("flash", ("flash",)),
        "efficient": ("fmha", ("efficient",)),
    }
    return [
        Collection(
            name, (*program, *words), (*_OPTIONS, "-k", kernel), gpu=True,
            modules=("torch", "triton") if words[0] == "triton" else ("torch",),
        )
        for name, (kernel, words) in runs.items()
    ]  # fmt: skip

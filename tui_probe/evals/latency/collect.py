"""What is run: each operation with nothing probed, with each probe, and under ncu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.evals.evaluation import Setting

PROBES: Final = ("block_sched", "gmem_bytes", "tensorop_count", "dmat")
_KERNELS: Final = {"attn": "attention_forward", "gmm": "matrix_product", "conv": "convolve", "gemm": "matrix_product"}
_BUDGETS: Final = (
    "--no-times", "--no-source", "--max-trace-bytes", "8G", "--max-result-files", "none", "--max-write-rate", "none",
    "--max-log-bytes", "1M",
)  # fmt: skip
_METRICS: Final = "dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum,gpu__time_duration.sum"


def collect(setting: Setting) -> list[Collection]:
    """All operations; on the simulated GPU the one that needs no framework, to see that it runs."""
    if setting.simulated:
        small = ("sums", "--size", "4", "--times", "3", "--ahead", "0")
        return list(_runs("sums", "accumulate", small, ("block_sched",), ()))
    return [
        run for name, kernel in _KERNELS.items() for run in _runs(name, kernel, (name,), PROBES, ("torch", "triton"))
    ]


def _runs(
    name: str, kernel: str, arguments: tuple[str, ...], probes: tuple[str, ...], modules: tuple[str, ...]
) -> Iterator[Collection]:
    argv = (PYTHON, f"{PROGRAMS}/calls.py", *arguments)
    nothing = ("-p", "block_sched", "-k", "no kernel of this name", "--launches", "0", *_BUDGETS)
    yield Collection(f"{name}-original", argv, nothing, modules)
    for probe in probes:
        options = ("-p", probe, "-k", kernel, "--launches", "all", *_BUDGETS)
        yield Collection(f"{name}-{probe}", argv, options, modules)
    yield Collection(f"{name}-ncu", argv, ("--ncu", _METRICS), modules, ("ncu",), gpu=True, keeps="output")

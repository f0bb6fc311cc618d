"""What is run: all operations in one process with nothing probed, with each probe, and under ncu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.evals.evaluation import Setting

PROBES: Final = ("block_sched", "gmem_bytes", "tensorop_count", "dmat")
OPERATIONS: Final = ("attn", "gmm", "conv", "gemm")
_KERNELS: Final = "attention_forward:matrix_product:convolve"
_TIMES: Final = ("--times", "10")
"""With dmat each call leaves up to 50 MB."""
_BUDGETS: Final = (
    "--no-times", "--no-source", "--max-trace-bytes", "8G", "--max-result-files", "none", "--max-write-rate", "none",
    "--max-log-bytes", "1M",
)  # fmt: skip
_METRICS: Final = "dram__bytes.sum,lts__t_bytes.sum,l1tex__t_bytes.sum,gpu__time_duration.sum"


def collect(setting: Setting) -> list[Collection]:
    """A run for each probe; on the simulated GPU of the operation that needs no framework, to see that it runs."""
    if setting.simulated:
        small = ("sums", "--size", "4", "--times", "3", "--ahead", "0")
        return list(_runs("accumulate", small, ("block_sched",), ()))
    return list(_runs(_KERNELS, (*OPERATIONS, *_TIMES), PROBES, ("torch", "triton")))


def _runs(
    kernels: str, arguments: tuple[str, ...], probes: tuple[str, ...], modules: tuple[str, ...]
) -> Iterator[Collection]:
    argv = (PYTHON, f"{PROGRAMS}/calls.py", *arguments)
    nothing = ("-p", "block_sched", "-k", "no kernel of this name", "--launches", "0", *_BUDGETS)
    yield Collection("original", argv, nothing, modules)
    for probe in probes:
        options = ("-p", probe, "-k", kernels, "--launches", "all", *_BUDGETS)
        yield Collection(probe, argv, options, modules)
    yield Collection("ncu", argv, ("--ncu", _METRICS), modules, ("ncu",), gpu=True, keeps="output")

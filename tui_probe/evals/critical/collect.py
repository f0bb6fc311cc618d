"""What is run: stores with and without gaps, and attention of a Llama layer, counted by a probe and by ncu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.evals.evaluation import PROGRAMS, PYTHON, Collection
from tui_probe.nsight.analysis.sectors import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.evals.evaluation import Setting

PROBE: Final = "gmem_sectors"
STORES: Final = "stores"
TENSORS: Final = {"llama_fp32": Tensor(128, 4096, "fp32"), "llama_bf16": Tensor(128, 4096, "bf16")}
"""What the attention of these programs writes."""
_COUNTED: Final = (
    "--launches",
    "all",
    "--no-times",
    "--no-source",
    "--max-trace-bytes",
    "64M",
    "--max-log-bytes",
    "1M",
)
_METRICS: Final = ",".join(
    (
        *(
            f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum"
            for op in ("ld", "st")
            for what in ("requests", "sectors")
        ),
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
        "regex:sm__ops_path_tensor_src.*",
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "sm__inst_executed.avg.per_cycle_active",
        "dram__bytes.sum.per_second",
        "gpu__time_duration.sum",
    )
)


def collect(setting: Setting) -> list[Collection]:
    """Each program twice: ``PROGRAM-probes`` and ``PROGRAM-ncu``. Stores need no framework, and run simulated too."""
    runs = list(_runs(STORES, (PYTHON, f"{PROGRAMS}/stores.py"), ()))
    if setting.simulated:
        return runs
    for name in TENSORS:
        argv = (PYTHON, f"{PROGRAMS}/llama_attention.py", name.partition("_")[2])
        runs += _runs(name, argv, ("torch",), "--capture-range")
    return runs


def _runs(name: str, argv: tuple[str, ...], modules: tuple[str, ...], *part: str) -> Iterator[Collection]:
    yield Collection(f"{name}-probes", argv, ("-p", PROBE, *part, *_COUNTED), modules)
    yield Collection(f"{name}-ncu", argv, (*part, "--ncu", _METRICS), modules, tools=("ncu",), gpu=True, keeps="ncu")

"""What a person can do about a kernel that was not probed."""

from __future__ import annotations

# Words of a reason, and what to do. The first that occurs counts.
_ADVICE = (
    ("no ptx", "This kernel carries machine code only. Build it with PTX: nvcc -gencode"
               " arch=compute_80,code=compute_80; TORCH_CUDA_ARCH_LIST=8.0+PTX; for JAX"
               " XLA_FLAGS=--xla_gpu_generate_line_info=true; for CuPy CUPY_COMPILE_WITH_PTX=1. Closed libraries"
               " (cuBLAS, cuDNN) ship none: their registers, occupancy and launches are shown all the same."),
    ("capture", "It was launched while a stream was being captured into a CUDA graph, where nothing may be allocated or"
                " waited for. Turn the graph off for this run to probe it (torch.compile: mode=\"default\")."),
    ("ptxas", "The assembler refused the PTX. process.log has its words; a newer ptxas may know this PTX"
              " version: see tui-probe doctor."),
    ("assembl", "The assembler is missing or failed. process.log has its words; see tui-probe doctor."),
    ("unsupported instruction", "The simulated GPU does not execute this instruction. Run it on an NVIDIA GPU."),
    ("engine", "The probe engine did not answer. process.log and the run's stderr have what it said."),
    ("memory", "The maps of the probe did not fit. Allow more with --max-probe-memory, or probe fewer launches with"
               " --launches."),
    ("trace", "The trace reached its limit. Allow more with --max-trace-bytes, or probe fewer launches with"
              " --launches."),
)  # fmt: skip

_BY_STATUS = {
    "excluded": "It was left out by --kernel or --exclude. Run again without them to probe it.",
    "pending": "It is being prepared: pruned, probed and assembled.",
    "failed": "The original kernel ran in its place, with its own results. process.log says what went wrong.",
    "skipped": "The original kernel ran. event.log has the lines around its first launch.",
}


def advice(status: str, reason: str | None) -> str:
    """What to do about a kernel of this status; "" for a probed one."""
    if status == "probed":
        return ""
    if status == "excluded":
        return _BY_STATUS[status]
    words = (reason or "").lower()
    return next((text for key, text in _ADVICE if key in words), _BY_STATUS.get(status, ""))

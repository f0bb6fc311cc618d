"""The kernels on which the cost of probes is measured, and the programs that launch them."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent.parent / "gpu" / "programs"
NATIVE = ("tiled_matmul", "cutlass_gemm", "cutlass_stream_k", "cutlass_convolution")
PYTHON = ("grouped_matmul", "attention", "compiled_layers")


@dataclass(frozen=True)
class Workload:
    """One row of the table: a kernel by a part of its name, who launches it, and its PTX in the corpus."""

    name: str
    kernel: str
    program: str
    ptx: str


TILED = Workload("tiled matmul", "tiled_matmul", "tiled_matmul", "tiled_matmul.sm_80.ptx")
WORKLOADS = (
    Workload("GEMM", "cutlass", "cutlass_gemm", "cutlass_gemm.sm_80.ptx"),
    Workload("stream-K GEMM", "cutlass", "cutlass_stream_k", "cutlass_stream_k.sm_80.ptx"),
    Workload("convolution", "cutlass", "cutlass_convolution", "cutlass_convolution.sm_80.ptx"),
    Workload("grouped matmul", "grouped_matmul", "python", "triton_grouped_matmul.sm_90a.ptx"),
    Workload("flash attention", "flash_attention", "python", "triton_attention.sm_90a.ptx"),
    Workload("layer norm", "native_layer_norm", "python", "torch_layer_norm.sm_90a.ptx"),
    Workload("softmax", "softmax", "python", "torch_softmax.sm_90a.ptx"),
    Workload("sum", "fused_sum", "python", "torch_sum.sm_90a.ptx"),
    Workload("pooling", "avg_pool2d", "python", "torch_avg_pool.sm_90a.ptx"),
    Workload("embedding", "embedding", "python", "torch_embedding.sm_90a.ptx"),
    Workload("gather", "gather", "python", "torch_gather.sm_90a.ptx"),
    TILED,
)
"""Workloads of the published table, and the tiled matmul, which is not a part of the means."""


def commands(folder: Path, built: Path | None, cutlass: Path | None) -> tuple[dict[str, list[str]], list[str]]:
    """Commands of the programs, and sentences with the reasons for missing ones.

    Native programs come from ``built``, or are compiled into ``folder``, those of CUTLASS with its headers.
    """
    found: dict[str, list[str]] = {}
    missing = []
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    for name in NATIVE:
        if built and (built / name).is_file():
            found[name] = [str((built / name).resolve())]
        elif nvcc is None:
            missing.append(f"{name}: no nvcc to build it with, and no --programs folder that holds it")
        elif name.startswith("cutlass") and cutlass is None:
            missing.append(f"{name}: give the folder of CUTLASS's headers with --cutlass, or --programs")
        else:
            found[name] = [str(compile_program(nvcc, name, folder, cutlass))]
    if all(importlib.util.find_spec(module) for module in ("torch", "triton")):
        scripts = [str(PROGRAMS / f"{name}.py") for name in PYTHON]
        found["python"] = [sys.executable, str(PROGRAMS / "several.py"), *scripts]
    else:
        missing.append("python: PyTorch or Triton is not installed")
    return found, missing


def compile_program(nvcc: str, name: str, folder: Path, cutlass: Path | None) -> Path:
    """Compile a program to machine code and PTX for sm_90."""
    both = "-gencode=arch=compute_90,code=[sm_90,compute_90]"
    include = [f"-I{cutlass}"] if cutlass else []
    source = PROGRAMS / f"{name}.cu"
    command = [nvcc, "-std=c++17", "-O2", "-w", both, "-cudart=static", *include, "-o", str(folder / name), str(source)]
    subprocess.run(command, check=True)
    return folder / name

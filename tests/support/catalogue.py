"""Programs of the matrix, in the order in which they are run: those that most users have come first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROGRAMS_FOLDER: Final = Path(__file__).with_name("programs")


@dataclass(frozen=True)
class Program:
    """A program: ``title`` is its row, ``modules`` must be importable, versions are those of ``packages``."""

    name: str
    title: str
    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    tool: str = ""
    """A program that must be on PATH."""
    variable: str = ""
    """An environment variable that must be set."""
    simulated: bool = False
    """True if it can run on the simulated GPU: it uses the driver API only."""

    @property
    def path(self) -> Path:
        return PROGRAMS_FOLDER / f"{self.name}_case.py"


PROGRAMS: Final = (
    Program("driver_api", "CUDA driver API", ("numpy",), ("numpy",), simulated=True),
    Program("pytorch", "PyTorch", ("torch",), ("torch",)),
    Program("torch_compile", "PyTorch, `torch.compile`", ("torch", "triton"), ("torch", "triton")),
    Program("triton", "Triton", ("triton", "numpy"), ("triton",), simulated=True),
    Program("gluon", "Gluon", ("torch", "triton.experimental.gluon"), ("triton",)),
    Program("jax", "JAX", ("jax",), ("jax",)),
    Program("cupy", "CuPy", ("cupy",), ("cupy-cuda13x", "cupy-cuda12x", "cupy")),
    Program("numba_cuda", "numba-cuda", ("numba.cuda", "numpy"), ("numba-cuda", "numba"), simulated=True),
    Program("cuda_cpp", "CUDA C++", tool="nvcc"),
    Program("thrust", "CUDA C++, Thrust and CUB", tool="nvcc"),
    Program("cuda_python", "cuda-python", ("cuda.core", "numpy"), ("cuda-core", "cuda-bindings"), simulated=True),
    Program("cutlass", "CUTLASS", ("cutlass_library",), ("nvidia-cutlass",), tool="nvcc"),
    Program("cute_dsl", "CuTe DSL", ("cutlass.cute", "torch"), ("nvidia-cutlass-dsl",)),
    Program("cutile", "cuTile", ("cuda.tile", "torch"), ("cuda-tile", "nvidia-cuda-tileiras")),
    Program("helion", "Helion", ("helion", "torch"), ("helion", "torch")),
    Program("quack", "quack", ("quack", "torch"), ("quack-kernels",)),
    Program("tilelang", "TileLang", ("tilelang", "torch"), ("tilelang",)),
    Program("warp", "Warp", ("warp", "numpy"), ("warp-lang",)),
    Program("flash_linear_attention", "flash-linear-attention", ("fla", "torch"), ("flash-linear-attention",)),
    Program("liger", "Liger", ("liger_kernel", "torch"), ("liger-kernel",)),
    Program("bitsandbytes", "bitsandbytes", ("bitsandbytes", "torch"), ("bitsandbytes",)),
    Program("torchao", "torchao", ("torchao", "torch"), ("torchao",)),
    Program("tinygrad", "tinygrad", ("tinygrad",), ("tinygrad",), simulated=True),
    Program("flashinfer", "FlashInfer", ("flashinfer", "torch"), ("flashinfer-python",)),
    Program("thunderkittens", "ThunderKittens", tool="nvcc", variable="THUNDERKITTENS_ROOT"),
)

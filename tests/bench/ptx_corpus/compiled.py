"""The sources of the corpus to files of PTX, by the compilers of its packages. No GPU is needed."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.ptx_corpus.packages import Packages

ARCH: Final = "sm_90"
_SOURCES: Final = Path(__file__).with_name("sources")
_ALGORITHMS: Final = 9
"""Groups in ``algorithms.cu``."""
_SCRIPTS: Final = ("cupy", "numba", "triton")
_GGML: Final = (
    "acc", "add-id", "argmax", "argsort", "binbcast", "clamp", "concat", "conv-transpose-1d", "conv2d-dw",
    "conv2d-transpose", "convert", "count-equal", "cpy", "cross-entropy-loss", "cumsum", "diag", "fwht", "getrows",
    "gla", "im2col", "mean", "mmvf", "mmvq", "moe-weighted-reduction", "norm", "opt-step-adamw", "pad", "pool2d",
    "quantize", "roll", "rope", "scale", "set-rows", "snake", "softcap", "softmax", "solve_tri", "ssm-conv", "ssm-scan",
    "sumrows", "topk-moe", "tri", "tsembd", "unary", "upscale", "wkv",
)  # fmt: skip


def compile_all(packages: Packages, folder: Path) -> None:
    """Write the PTX of every source into ``folder``. Raises CalledProcessError for one that does not compile."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(_run, command, folder) for command in _commands(packages, folder)]:
            done.result()


def _run(command: list[str], folder: Path) -> None:
    settings = {"TRITON_DEFAULT_FP_FUSION": "1", "TRITON_CACHE_DIR": str(folder.parent / "triton")}
    subprocess.run(command, check=True, env=os.environ | settings)


def _commands(packages: Packages, folder: Path) -> Iterator[list[str]]:
    for name in _SCRIPTS:
        yield [str(packages.python), str(_SOURCES / f"{name}_kernels.py"), str(folder)]
    includes = [packages.toolkit / "include", packages.toolkit / "include" / "cccl"]
    nvcc = [str(packages.toolkit / "bin" / "nvcc"), "-ptx", f"-arch={ARCH}", "-std=c++17", "-O3", "-w"]
    nvcc += [f"-I{include}" for include in includes]
    for group in range(_ALGORITHMS):
        yield [*nvcc, f"-DGROUP={group}", str(_SOURCES / "algorithms.cu"), "-o", str(folder / f"cccl_{group}.ptx")]
    yield [*nvcc, str(_SOURCES / "random_numbers.cu"), "-o", str(folder / "curand.ptx")]
    ggml = packages.ggml
    for name in _GGML:
        source = ggml / "src" / "ggml-cuda" / f"{name}.cu"
        flags = ["-use_fast_math", f"-I{ggml / 'include'}", f"-I{ggml / 'src'}"]
        yield [*nvcc, *flags, str(source), "-o", str(folder / f"ggml_{name}.ptx")]

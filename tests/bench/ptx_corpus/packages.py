"""The packages that the corpus is made of, at fixed versions, in a virtual environment of their own."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

REQUIREMENTS: Final = (
    "nvidia-cuda-nvcc==13.5.37",
    "nvidia-cuda-crt==13.5.37",
    "nvidia-nvvm==13.5.37",
    "nvidia-cuda-runtime==13.5.37",
    "nvidia-cuda-nvrtc==13.5.37",
    "nvidia-cuda-cccl==13.3.5.0.6",
    "nvidia-curand==10.4.5.25",
    "nvidia-cublas==13.10.0.20",
    "cuda-toolkit==13.5.0",
    "cuda-bindings==13.5.0",
    "numba-cuda[cu13]==0.30.4",
    "numba==0.68.1",
    "cupy-cuda13x==14.2.0",
    "triton==3.9.0",
)
"""Packages that are installed. nvcc also needs a host compiler (g++)."""
SOURCES: Final = "llama-cpp-python==0.3.36"
"""A source distribution, which holds the kernels of ggml."""
_GGML: Final = "/vendor/llama.cpp/ggml/"


class Packages:
    """An environment in ``folder``, made where it is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.python = folder / "environment" / "bin" / "python"
        if not (folder / "complete").exists():
            self._install()
            self._unpack()
            (folder / "complete").touch()

    @property
    def toolkit(self) -> Path:
        """Directories of a CUDA_HOME: ``bin``, ``include`` and ``lib``."""
        (found,) = (self._folder / "environment" / "lib").glob("python3*/site-packages/nvidia/cu13")
        return found

    @property
    def ggml(self) -> Path:
        """The folder of ggml's sources."""
        (found,) = (self._folder / "sources").glob("*" + _GGML)
        return found

    def _install(self) -> None:
        environment = self._folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        subprocess.run([*self._pip, "install", "-q", "--no-cache-dir", *REQUIREMENTS], check=True)

    def _unpack(self) -> None:
        name = SOURCES.partition("==")[0]
        downloads = self._folder / "downloads"
        options = ["-q", "--no-cache-dir", "--no-deps", "--no-binary", name, "-d", str(downloads)]
        subprocess.run([*self._pip, "download", *options, SOURCES], check=True)
        (archive,) = downloads.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            wanted = [member for member in packed if _GGML in member.name]
            packed.extractall(self._folder / "sources", wanted, filter="data")

    @property
    def _pip(self) -> list[str]:
        return [str(self.python), "-m", "pip"]

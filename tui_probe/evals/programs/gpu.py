"""The first CUDA device, for the programs here, which need the driver only.

The binding is that of tui-probe, loaded by its path: the Python that runs a program may lack tui_probe.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ctypes

    from tui_probe.cuda_driver import CudaDevice, DriverError
else:
    spec = importlib.util.spec_from_file_location("cuda_driver", Path(__file__).resolve().parents[2] / "cuda_driver.py")
    cuda_driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cuda_driver)
    CudaDevice, DriverError = cuda_driver.CudaDevice, cuda_driver.DriverError

__all__ = ["MAX_THREADS_PER_SM", "SM_COUNT", "DriverError", "Gpu"]

SM_COUNT, MAX_THREADS_PER_SM = 16, 39  # attributes of a device


class Gpu(CudaDevice):
    """The first CUDA device, with kernels as PTX text and launches of one dimension."""

    def function(self, ptx: str, name: str) -> ctypes.c_void_p:
        """The kernel ``name`` of PTX text."""
        return self.module_function(self.load_module(ptx.encode()), name)

    def launch(self, function: ctypes.c_void_p, grid: int, block: int, *arguments: Any, shared_bytes: int = 0) -> None:
        """Launch on the default stream, with that many bytes of dynamic shared memory; does not wait."""
        self.launch_kernel(function, (grid, 1, 1), (block, 1, 1), shared_bytes, *arguments)

"""The driver API for tests: ``driver.cuMemAlloc_v2(…)`` raises CudaError unless the call succeeds."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tui_probe.simgpu.examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

KERNELS = Path(tui_probe.simgpu.examples.__path__[0]) / "kernels"

U64 = ctypes.c_uint64
SIZE = ctypes.c_size_t
HANDLE = ctypes.c_void_p


class Code(IntEnum):
    """Some of the results that a call may have."""

    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    INVALID_DEVICE = 101
    INVALID_IMAGE = 200
    INVALID_CONTEXT = 201
    NO_BINARY = 209
    UNSUPPORTED_LIMIT = 215
    INVALID_PTX = 218
    UNSUPPORTED_PTX_VERSION = 222
    INVALID_SOURCE = 300
    FILE_NOT_FOUND = 301
    INVALID_HANDLE = 400
    NOT_FOUND = 500
    ILLEGAL_ADDRESS = 700
    CONTEXT_IS_DESTROYED = 709
    ASSERT = 710
    ALREADY_REGISTERED = 712
    NOT_REGISTERED = 713
    MISALIGNED_ADDRESS = 716
    LAUNCH_FAILED = 719
    COOPERATIVE_LAUNCH_TOO_LARGE = 720
    NOT_SUPPORTED = 801
    INVALID_CLUSTER_SIZE = 912


class CudaError(Exception):
    """A call that failed. ``code`` is its CUresult."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function} returned {code}")
        self.code = code


def fails(code: Code) -> AbstractContextManager[object]:
    """A context in which a call must fail with ``code``."""
    return pytest.raises(CudaError, match=rf" {code:d}$")


class Driver:
    """A libcuda.so.1."""

    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))

    def __getattr__(self, name: str) -> Callable[..., None]:
        function = getattr(self.library, name)

        def call(*arguments: object) -> None:
            code = function(*arguments)
            if code:
                raise CudaError(name, code)

        return call

    def create_context(self) -> HANDLE:
        context = HANDLE()
        self.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
        return context

    def allocate(self, size: int) -> int:
        address = U64()
        self.cuMemAlloc_v2(ctypes.byref(address), SIZE(size))
        return address.value

    def upload(self, array: NDArray[np.generic]) -> int:
        address = self.allocate(array.nbytes)
        self.cuMemcpyHtoD_v2(U64(address), HANDLE(array.ctypes.data), SIZE(array.nbytes))
        return address

    def read(self, address: int, size: int) -> bytes:
        content = ctypes.create_string_buffer(size)
        self.cuMemcpyDtoH_v2(content, U64(address), SIZE(size))
        return content.raw

    def load(self, image: bytes | str) -> HANDLE:
        module = HANDLE()
        self.cuModuleLoadData(ctypes.byref(module), image.encode() if isinstance(image, str) else image)
        return module

    def function(self, module: HANDLE, name: str) -> HANDLE:
        function = HANDLE()
        self.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        return function

    def example(self, name: str) -> HANDLE:
        """One of the bundled kernels."""
        return self.function(self.load((KERNELS / f"{name}.ptx").read_bytes()), name)

    def launch(
        self, function: HANDLE, *arguments: object, grid: int = 1, block: int = 32, shared_bytes: int = 0
    ) -> None:
        """Launch with arguments that are ctypes values, on the default stream."""
        pointers = (HANDLE * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))  # type: ignore[arg-type]
        self.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared_bytes, None, pointers, None)

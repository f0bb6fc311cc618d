"""Kernels of the tests of the simulated GPU on this machine's GPU, through the driver API."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, Any]


class Gpu:
    """The first GPU. Needs compute capability 9.0, which the simulated GPU has at most."""

    def __init__(self) -> None:
        self.driver = ctypes.CDLL("libcuda.so.1")
        major, context = ctypes.c_int(), ctypes.c_void_p()
        assert not self.driver.cuInit(0)
        assert not self.driver.cuDeviceGetAttribute(ctypes.byref(major), 75, 0)
        if major.value != 9:
            pytest.skip("what is compared is of compute capability 9.0")
        assert not self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        assert not self.driver.cuCtxSetCurrent(context)

    def load(self, source: str) -> ctypes.c_void_p:
        """A module of PTX."""
        module = ctypes.c_void_p()
        assert not self.driver.cuModuleLoadData(ctypes.byref(module), source.encode())
        return module

    def launch(
        self, module: ctypes.c_void_p, name: str, arguments: Sequence[Array | int], grid: int = 1, block: int = 128
    ) -> None:
        """Runs a kernel of blocks of threads. Arrays are uploaded first, and updated after; others are 64 bits."""
        function = ctypes.c_void_p()
        assert not self.driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        values = [
            self._uploaded(argument) if isinstance(argument, np.ndarray) else ctypes.c_uint64(argument)
            for argument in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        assert not self.driver.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, None, pointers, None)
        for array, address in zip(arguments, values, strict=True):
            if isinstance(array, np.ndarray):
                target = array.ctypes.data_as(ctypes.c_void_p)
                assert not self.driver.cuMemcpyDtoH_v2(target, address, ctypes.c_size_t(array.nbytes))
                self.driver.cuMemFree_v2(address)

    def unload(self, module: ctypes.c_void_p) -> None:
        """Forget a module."""
        self.driver.cuModuleUnload(module)

    def _uploaded(self, values: Array) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        assert not self.driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(values.nbytes))
        source = values.ctypes.data_as(ctypes.c_void_p)
        assert not self.driver.cuMemcpyHtoD_v2(address, source, ctypes.c_size_t(values.nbytes))
        return address

"""The CUDA driver through ctypes: all that the programs here need where no framework is installed."""

from __future__ import annotations

import ctypes
from typing import Any

SM_COUNT, MAX_THREADS_PER_SM = 16, 39  # attributes of a device


class DriverError(Exception):
    """A call of the CUDA driver that failed."""


class Gpu:
    """The first CUDA device."""

    def __init__(self) -> None:
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise DriverError(f"no CUDA driver: {error}") from error
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver. Raises DriverError with its name."""
        status = getattr(self._driver, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorName(status, ctypes.byref(text))
            raise DriverError(f"{name}: {(text.value or b'unknown error').decode()} ({status})")

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
        return value.value

    def function(self, ptx: str, name: str) -> ctypes.c_void_p:
        """The kernel ``name`` of PTX text."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def allocate(self, size: int) -> ctypes.c_uint64:
        """Device memory of so many bytes."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def download(self, address: ctypes.c_uint64, size: int) -> bytes:
        """Copy an array out of device memory."""
        host = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", host, address, ctypes.c_size_t(size))
        return host.raw

    def launch(self, function: ctypes.c_void_p, grid: int, block: int, *arguments: Any, shared: int = 0) -> None:
        """Launch on the default stream, with so many bytes of dynamic shared memory; does not wait."""
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        self.call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, shared, None, pointers, None)

    def wait(self) -> None:
        self.call("cuCtxSynchronize")

    def event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def record(self, event: ctypes.c_void_p) -> None:
        self.call("cuEventRecord", event, None)

    def milliseconds(self, start: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        """Between two events, both of which have happened."""
        value = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(value), start, end)
        return value.value

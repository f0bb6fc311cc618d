"""The CUDA driver through ctypes, for the self-test of grafts, the bandwidth measurement and programs of the package.

It imports nothing of tui_probe: ``evals/programs/gpu.py`` loads it by its path, since the Python that runs those
programs may lack tui_probe.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from typing import Any

    Dimensions = tuple[int, int, int]
    Argument = Any
    """A value of ctypes."""

DRIVER_LIBRARY: Final = "libcuda.so.1"


class DriverError(Exception):
    """A call of the CUDA driver that failed."""


class CudaDevice:
    """A device with its primary context current. Every failed call raises ``failure`` with its name and error."""

    failure: ClassVar[type[Exception]] = DriverError

    def __init__(self, library: str = DRIVER_LIBRARY, number: int = 0) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise self.failure(f"no CUDA driver: {error}") from error
        self.call("cuInit", c_uint(0))
        self.number = self._choose(number)
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), c_int(self.number))
        self.call("cuCtxSetCurrent", context)

    def _choose(self, number: int) -> int:
        return number

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver."""
        status = getattr(self._library, name)(*arguments)
        if status:
            text = c_char_p()
            self._library.cuGetErrorName(c_int(status), byref(text))
            raise self.failure(f"{name}: {(text.value or b'unknown error').decode()} ({status})")

    def attribute(self, code: int, device: int | None = None) -> int:
        """An attribute (CUdevice_attribute) of this or another device."""
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), c_int(code), c_int(self.number if device is None else device))
        return value.value

    def load_module(self, image: bytes) -> c_void_p:
        """Load a cubin, or PTX, which the driver compiles."""
        module = c_void_p()
        self.call("cuModuleLoadData", byref(module), c_char_p(image))
        return module

    def module_function(self, module: c_void_p, name: str) -> c_void_p:
        """A kernel of a module."""
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, c_char_p(name.encode()))
        return function

    def allocate(self, size: int) -> c_uint64:
        """The address of that many bytes of device memory."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address

    def free(self, address: c_uint64) -> None:
        self.call("cuMemFree_v2", address)

    def write_memory(self, address: c_uint64, host: int, size: int) -> None:
        """Copy that many bytes at the address ``host`` into device memory."""
        self.call("cuMemcpyHtoD_v2", address, c_void_p(host), c_size_t(size))

    def read_memory(self, address: c_uint64, size: int) -> bytes:
        """Copy that many bytes out of device memory."""
        content = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", content, address, c_size_t(size))
        return content.raw

    def launch_kernel(
        self, function: c_void_p, grid: Dimensions, block: Dimensions, shared_bytes: int, *arguments: Argument
    ) -> None:
        """Launch in the default stream, with ``shared_bytes`` bytes of dynamic shared memory; does not wait."""
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        self.call("cuLaunchKernel", function, *grid, *block, shared_bytes, None, pointers, None)

    def synchronize(self) -> None:
        """Wait for all that was enqueued."""
        self.call("cuCtxSynchronize")

    def event(self) -> c_void_p:
        event = c_void_p()
        self.call("cuEventCreate", byref(event), 0)
        return event

    def record(self, event: c_void_p) -> None:
        """Note the time at which the default stream comes here."""
        self.call("cuEventRecord", event, None)

    def milliseconds(self, start: c_void_p, end: c_void_p) -> float:
        """Time between two events that have happened."""
        value = ctypes.c_float()
        self.call("cuEventElapsedTime", byref(value), start, end)
        return value.value

"""Bindings by ctypes of the CUDA driver calls that the self-test of grafts makes."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import TYPE_CHECKING, Final

from tui_probe.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence

DRIVER_LIBRARY: Final = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and MINOR."""


class CudaContext:
    """A context on one device. Every failed call raises LaunchError with the call's name and the driver's error."""

    def __init__(self, library: str, arch: int) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise LaunchError(f"no CUDA driver: {error}") from error
        self._call("cuInit", c_uint(0))
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(context), c_int(self._device_of(arch)))
        self._call("cuCtxSetCurrent", context)

    def load(self, image: bytes) -> CudaModule:
        """Load a cubin."""
        handle = c_void_p()
        self._call("cuModuleLoadData", byref(handle), c_char_p(image))
        return CudaModule(self, handle)

    def allocate(self, size: int) -> int:
        """The address of so many bytes of device memory, all 0."""
        address = c_ulonglong()
        self._call("cuMemAlloc_v2", byref(address), c_size_t(size))
        self._call("cuMemsetD8_v2", address, ctypes.c_ubyte(0), c_size_t(size))
        return address.value

    def read(self, address: int, size: int) -> bytes:
        """Bytes of device memory."""
        content = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", content, c_ulonglong(address), c_size_t(size))
        return content.raw

    def write(self, address: int, content: bytes) -> None:
        """Change device memory."""
        self._call("cuMemcpyHtoD_v2", c_ulonglong(address), c_char_p(content), c_size_t(len(content)))

    def launch(self, function: c_void_p, grid: int, block: int, parameters: Sequence[int]) -> None:
        """Run a kernel whose parameters all have 8 bytes, to its end."""
        values = [c_ulonglong(value) for value in parameters]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        shape = [c_uint(number) for number in (grid, 1, 1, block, 1, 1, 0)]
        self._call("cuLaunchKernel", function, *shape, c_void_p(0), pointers, c_void_p(0))
        self._call("cuCtxSynchronize")

    def _device_of(self, arch: int) -> int:
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        for device in range(count.value):
            major, minor = c_int(), c_int()
            self._call("cuDeviceGetAttribute", byref(major), c_int(_MAJOR), c_int(device))
            self._call("cuDeviceGetAttribute", byref(minor), c_int(_MINOR), c_int(device))
            if major.value * 10 + minor.value == arch:
                return device
        raise LaunchError(f"no device of sm_{arch} can be used")

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            text = c_char_p()
            self._library.cuGetErrorName(c_int(status), byref(text))
            raise LaunchError(f"{name}: {(text.value or b'').decode() or f'error {status}'}")


class CudaModule:
    """A loaded cubin."""

    def __init__(self, cuda: CudaContext, handle: c_void_p) -> None:
        self._cuda = cuda
        self._handle = handle

    def function(self, name: str) -> c_void_p:
        """A kernel."""
        function = c_void_p()
        self._cuda._call("cuModuleGetFunction", byref(function), self._handle, c_char_p(name.encode()))
        return function

    def variable(self, name: str) -> int:
        """The address of a variable."""
        address, size = c_ulonglong(), c_size_t()
        self._cuda._call("cuModuleGetGlobal_v2", byref(address), byref(size), self._handle, c_char_p(name.encode()))
        return address.value

"""The CUDA driver through ctypes, for the self-test of grafts and the measurement of bandwidth.

Programs that users run (``evals/programs/gpu.py``, ``simgpu/examples/demo.py``) have bindings of their own: the Python
that runs them may lack tui_probe.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import TYPE_CHECKING, Final

from tui_probe.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence

DRIVER_LIBRARY: Final = "libcuda.so.1"
Argument = ctypes.c_ulonglong | ctypes.c_uint64 | ctypes.c_uint32
_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and MINOR."""


class CudaDevice:
    """A device with its primary context current. Every failed call raises LaunchError with its name and error."""

    def __init__(self, library: str, number: int = 0) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise LaunchError(f"no CUDA driver: {error}") from error
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
            raise LaunchError(f"{name}: {(text.value or b'unknown error').decode()} ({status})")

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

    def launch_kernel(self, function: c_void_p, blocks: int, threads: int, shared: int, *arguments: Argument) -> None:
        """Launch in the default stream, with ``shared`` bytes of dynamic shared memory; does not wait."""
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, None, pointers, None)

    def synchronize(self) -> None:
        """Wait for all that was enqueued."""
        self.call("cuCtxSynchronize")


class CudaContext(CudaDevice):
    """The first device of an architecture (90), with blocking calls on whole bytes."""

    def __init__(self, library: str, arch: int) -> None:
        self._arch = arch
        super().__init__(library)

    def _choose(self, number: int) -> int:
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        for device in range(number, count.value):
            if self.attribute(_MAJOR, device) * 10 + self.attribute(_MINOR, device) == self._arch:
                return device
        raise LaunchError(f"no device of sm_{self._arch} can be used")

    def load(self, image: bytes) -> CudaModule:
        """Load a cubin."""
        return CudaModule(self, self.load_module(image))

    def allocate(self, size: int) -> int:
        """The address of so many bytes of device memory, all 0."""
        address = c_ulonglong()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0), c_size_t(size))
        return address.value

    def read(self, address: int, size: int) -> bytes:
        """Bytes of device memory."""
        content = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", content, c_ulonglong(address), c_size_t(size))
        return content.raw

    def write(self, address: int, content: bytes) -> None:
        """Change device memory."""
        self.call("cuMemcpyHtoD_v2", c_ulonglong(address), c_char_p(content), c_size_t(len(content)))

    def launch(self, function: c_void_p, grid: int, block: int, parameters: Sequence[int]) -> None:
        """Run a kernel whose parameters all have 8 bytes, to its end."""
        self.launch_kernel(function, grid, block, 0, *map(c_ulonglong, parameters))
        self.synchronize()


class CudaModule:
    """A loaded cubin."""

    def __init__(self, cuda: CudaContext, handle: c_void_p) -> None:
        self._cuda = cuda
        self._handle = handle

    def function(self, name: str) -> c_void_p:
        """A kernel."""
        return self._cuda.module_function(self._handle, name)

    def variable(self, name: str) -> int:
        """The address of a variable."""
        address, size = c_ulonglong(), c_size_t()
        self._cuda.call("cuModuleGetGlobal_v2", byref(address), byref(size), self._handle, c_char_p(name.encode()))
        return address.value

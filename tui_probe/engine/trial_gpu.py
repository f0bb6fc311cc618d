"""The GPU of the self-test of grafts: modules, memory and launches, each of which is waited for."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import TYPE_CHECKING, Final

from tui_probe.cuda_driver import CudaDevice
from tui_probe.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAJOR: Final = 75
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR."""
_MINOR: Final = 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR."""


class CudaContext(CudaDevice):
    """The first device of an architecture (90), with blocking calls on whole bytes."""

    failure = LaunchError

    def __init__(self, library: str, arch: int) -> None:
        self._arch = arch
        super().__init__(library)

    def _choose(self, number: int) -> int:
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        for device in range(number, count.value):
            if self.attribute(_MAJOR, device) * 10 + self.attribute(_MINOR, device) == self._arch:
                return device
        raise self.failure(f"no device of sm_{self._arch} can be used")

    def load(self, image: bytes) -> CudaModule:
        """Load a cubin."""
        return CudaModule(self, self.load_module(image))

    def allocate_zeros(self, size: int) -> int:
        """The address of so many bytes of device memory, all 0."""
        address = self.allocate(size)
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0), c_size_t(size))
        return address.value

    def read(self, address: int, size: int) -> bytes:
        """Bytes of device memory."""
        return self.read_memory(c_uint64(address), size)

    def write(self, address: int, content: bytes) -> None:
        """Change device memory."""
        self.call("cuMemcpyHtoD_v2", c_uint64(address), c_char_p(content), c_size_t(len(content)))

    def launch(self, function: c_void_p, grid: int, block: int, parameters: Sequence[int]) -> None:
        """Run a kernel whose parameters all have 8 bytes, to its end."""
        self.launch_kernel(function, (grid, 1, 1), (block, 1, 1), 0, *map(c_uint64, parameters))
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
        address, size = c_uint64(), c_size_t()
        self._cuda.call("cuModuleGetGlobal_v2", byref(address), byref(size), self._handle, c_char_p(name.encode()))
        return address.value

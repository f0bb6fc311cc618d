"""The first GPU through the driver API: the calls that bandwidth needs."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.bandwidth.rates import GpuCard
from tui_probe.cuda_driver import CudaDevice
from tui_probe.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# CUdevice_attribute
_SM_COUNT: Final = 16
_MEMORY_CLOCK_KHZ: Final = 36
_MEMORY_BUS_BITS: Final = 37
_L2_BYTES: Final = 38
_SHARED_OPT_IN: Final = 97
_MAX_DYNAMIC_SHARED: Final = 8  # CUfunction_attribute


@dataclass(frozen=True, slots=True)
class DeviceProperties(GpuCard):
    """A GPU with the shared memory that a block may use, bytes."""

    shared_bytes: int


def bus_bandwidth(clock_khz: int, bus_bits: int) -> float | None:
    """Return bytes per second: two transfers per clock of the whole width. None where either is 0, thus unknown."""
    return 2.0 * clock_khz * 1e3 * bus_bits / 8 if clock_khz and bus_bits else None


class Gpu(CudaDevice):
    """Device 0, with the asynchronous copies, host memory and events that are timed."""

    failure = LaunchError

    def __init__(self, driver: Path) -> None:
        super().__init__(str(driver))
        self.properties = self._properties()

    def _properties(self) -> DeviceProperties:
        name, total = ctypes.create_string_buffer(256), ctypes.c_size_t()
        self.call("cuDeviceGetName", name, 256, 0)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(total), 0)
        codes = (_SM_COUNT, _L2_BYTES, _MEMORY_CLOCK_KHZ, _MEMORY_BUS_BITS, _SHARED_OPT_IN)
        sms, l2, clock, bus, shared = map(self.attribute, codes)
        text, bandwidth = name.value.decode(errors="replace"), bus_bandwidth(clock, bus)
        return DeviceProperties(text, sms, l2, total.value, clock, bus, bandwidth, shared)

    def free_memory(self) -> int:
        """Return the free device memory in bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def function(self, module: ctypes.c_void_p, name: str, shared_bytes: int = 0) -> ctypes.c_void_p:
        """A kernel that may use ``shared_bytes`` of dynamic shared memory."""
        function = self.module_function(module, name)
        if shared_bytes:
            self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared_bytes)
        return function

    @contextmanager
    def memory(self, size: int) -> Iterator[int]:
        """``size`` bytes of device memory, set to 1s so that pages are there; its address."""
        address = self.allocate(size)
        try:
            self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(1), ctypes.c_size_t(size))
            self.synchronize()
            yield address.value
        finally:
            self.free(address)

    @contextmanager
    def pinned(self, size: int) -> Iterator[int]:
        """``size`` bytes of page-locked host memory; its address."""
        address = ctypes.c_void_p()
        self.call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(size), 0)
        try:
            ctypes.memset(address, 1, size)
            yield address.value or 0
        finally:
            self.call("cuMemFreeHost", address)

    def copy_to_device(self, device: int, host: int, size: int) -> None:
        """Enqueue a copy."""
        self.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(device), ctypes.c_void_p(host), ctypes.c_size_t(size), None)

    def copy_to_host(self, host: int, device: int, size: int) -> None:
        """Enqueue a copy."""
        self.call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(host), ctypes.c_uint64(device), ctypes.c_size_t(size), None)

    def copy_on_device(self, destination: int, source: int, size: int) -> None:
        """Enqueue the driver's own copy."""
        self.call(
            "cuMemcpyDtoDAsync_v2", ctypes.c_uint64(destination), ctypes.c_uint64(source), ctypes.c_size_t(size), None
        )

    @contextmanager
    def events(self) -> Iterator[tuple[ctypes.c_void_p, ctypes.c_void_p]]:
        """Two events, to record before and after what is timed."""
        pair = self.event(), self.event()
        try:
            yield pair
        finally:
            for event in pair:
                self.call("cuEventDestroy_v2", event)

    def seconds_between(self, start: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        """Seconds from one event to the other, once both have happened."""
        self.call("cuEventSynchronize", end)
        return self.milliseconds(start, end) / 1e3

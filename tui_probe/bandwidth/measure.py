"""Bandwidth of the GPU memories, of the link to the host, and of the disk.

Every rate is the bytes that a repeat moves over the median time of several repeats. On a GPU a first repeat more does
not count. Events in the stream time kernels and driver copies; the host's clock times pageable copies, which the host
takes part in. On a disk, a file is written and read, past the page cache where possible.

How caches are kept out: reads, writes and copies go through a buffer that is at least ``MIN_L2_MULTIPLE`` times as
large as L2, from end to end, so a word is out of L2 again before its next turn; small windows (few blocks) wander
through the buffer and never come back within a repeat. L2's own rate is the opposite: a quarter of L2, read many times,
past L1.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.bandwidth.rates import GpuCard, Rate
from tui_probe.cuda_driver import CudaDevice
from tui_probe.errors import BandwidthError, LaunchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.cuda_driver import Argument

# CUdevice_attribute
_SM_COUNT: Final = 16
_MEMORY_CLOCK_KHZ: Final = 36
_MEMORY_BUS_BITS: Final = 37
_L2_BYTES: Final = 38
_SHARED_OPT_IN: Final = 97
_MAX_DYNAMIC_SHARED: Final = 8  # CUfunction_attribute
PTX: Final = Path(__file__).parent / "kernels" / "bandwidth.ptx"
THREADS: Final = 256
"""Threads per block."""
WORD_BYTES: Final = 16
"""Bytes that a thread moves at a time."""
STAGES: Final = (1, 2, 4, 8, 16, 32)
"""Numbers of stages in flight per block, for which the module has kernels."""
STAGE_BYTES: Final = THREADS * WORD_BYTES
MIN_L2_MULTIPLE: Final = 4
"""Minimum size of the buffer, as a multiple of L2."""
MAX_BUFFER_BYTES: Final = 4 << 30
"""Maximum bytes of the buffer: a measurement moves all of it."""
TRANSFER_BYTES: Final = 256 << 20
"""Bytes of a copy between host and device, which takes milliseconds: its start takes microseconds."""
L2_PASSES: Final = 32
"""Times that a launch reads the buffer, so that the first time, out of memory, hardly counts."""
CHUNK_BYTES: Final = 8 << 20
"""Bytes of one write to a disk, or read from one."""
TARGET_SECONDS: Final = 2e-3
"""A timed launch should take about this long: the launch itself takes a few millionths."""


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
        self.properties = self._read_properties()

    def _read_properties(self) -> DeviceProperties:
        name, memory_bytes = ctypes.create_string_buffer(256), ctypes.c_size_t()
        self.call("cuDeviceGetName", name, 256, 0)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(memory_bytes), 0)
        codes = (_SM_COUNT, _L2_BYTES, _MEMORY_CLOCK_KHZ, _MEMORY_BUS_BITS, _SHARED_OPT_IN)
        sms, l2_bytes, clock_khz, bus_bits, shared_bytes = map(self.attribute, codes)
        name_text, bandwidth = name.value.decode(errors="replace"), bus_bandwidth(clock_khz, bus_bits)
        return DeviceProperties(
            name_text, sms, l2_bytes, memory_bytes.value, clock_khz, bus_bits, bandwidth, shared_bytes
        )

    def free_memory(self) -> int:
        """Return the free device memory in bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def function(self, module: ctypes.c_void_p, name: str, shared_bytes: int = 0) -> ctypes.c_void_p:
        """Return a kernel that may use ``shared_bytes`` of dynamic shared memory."""
        function = self.module_function(module, name)
        if shared_bytes:
            self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared_bytes)
        return function

    @contextmanager
    def device_memory(self, size: int) -> Iterator[int]:
        """Yield the address of ``size`` bytes of device memory, set to 1s so that pages are there."""
        address = self.allocate(size)
        try:
            self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(1), ctypes.c_size_t(size))
            self.synchronize()
            yield address.value
        finally:
            self.free(address)

    @contextmanager
    def pinned_memory(self, size: int) -> Iterator[int]:
        """Yield the address of ``size`` bytes of page-locked host memory."""
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
    def event_pair(self) -> Iterator[tuple[ctypes.c_void_p, ctypes.c_void_p]]:
        """Yield two events, to record before and after what is timed."""
        pair = self.event(), self.event()
        try:
            yield pair
        finally:
            for event in pair:
                self.call("cuEventDestroy_v2", event)

    def seconds_between(self, start: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        """Return the seconds from one event to the other, once both have happened."""
        self.call("cuEventSynchronize", end)
        return self.milliseconds(start, end) / 1e3


class GpuBench:
    """Measures one GPU. The buffers are made once."""

    def __init__(self, gpu: Gpu, repeats: int, buffer: int, buffer_bytes: int) -> None:
        self._gpu = gpu
        self._repeats = repeats
        self._buffer, self._buffer_bytes = buffer, buffer_bytes
        self._module = gpu.load_module(PTX.read_bytes())

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffer."""
        return self._buffer_bytes

    def measure_memory(self) -> Iterator[Rate]:
        """Measure device memory: read, write and copy by kernels, and the driver's own copy."""
        limit, start, half = self._gpu.properties.memory_bandwidth, self._buffer, self._buffer_bytes // 2
        blocks = 16 * self._gpu.properties.sms
        words, half_words = _word_count(self._buffer_bytes), _word_count(half)
        launch_read = self._launcher("read_words", blocks, _u64(start), words, _u32(1), _u64(start))
        launch_write = self._launcher("write_words", blocks, _u64(start), words)
        launch_copy = self._launcher("copy_words", blocks, _u64(start), _u64(start + half), half_words)
        yield self._rate_by_events("memory_read", "memory, read", self._buffer_bytes, limit, launch_read)
        yield self._rate_by_events("memory_write", "memory, write", self._buffer_bytes, limit, launch_write)
        yield self._rate_by_events("memory_copy", "memory, copy", 2 * half, limit, launch_copy)
        copy_by_driver = partial(self._gpu.copy_on_device, start, start + half, half)
        yield self._rate_by_events("driver_copy", "memory, driver's copy", 2 * half, limit, copy_by_driver)

    def measure_cache(self) -> Rate:
        """Measure reads of L2, past L1."""
        size = self._gpu.properties.l2_bytes // 4 // WORD_BYTES * WORD_BYTES
        start, blocks = _u64(self._buffer), 4 * self._gpu.properties.sms
        launch_read = self._launcher("read_words", blocks, start, _word_count(size), _u32(L2_PASSES), start)
        return self._rate_by_events("l2_read", "L2, read", size * L2_PASSES, None, launch_read)

    def _launcher(self, name: str, blocks: int, *arguments: Argument) -> Callable[[], None]:
        """Return a function that enqueues a launch of a kernel."""
        function = self._gpu.function(self._module, name)
        return partial(self._gpu.launch_kernel, function, (blocks, 1, 1), (THREADS, 1, 1), 0, *arguments)

    def measure_to_shared(self, blocks: int, stages: int) -> Rate:
        """Measure device to shared memory by ``blocks`` with ``stages`` in flight each. Raises BandwidthError."""
        gpu = self._gpu
        shared_bytes = stages * STAGE_BYTES
        if stages not in STAGES or shared_bytes > gpu.properties.shared_bytes:
            raise BandwidthError(
                f"{shared_bytes} bytes in flight per block exceed the {gpu.properties.shared_bytes} bytes of"
                " shared memory of a block"
            )
        kernel = gpu.function(self._module, f"to_shared_{stages}", shared_bytes)
        size = self._window_bytes(blocks, stages)
        window_offsets = cycle(range(0, self._buffer_bytes - size + 1, size))

        def launch() -> None:
            window = _u64(self._buffer + next(window_offsets))
            arguments = window, _word_count(size), _u64(self._buffer)
            gpu.launch_kernel(kernel, (blocks, 1, 1), (THREADS, 1, 1), shared_bytes, *arguments)

        rate = self._rate_by_events(
            "to_shared", "memory to shared memory", size, gpu.properties.memory_bandwidth, launch
        )
        return replace(rate, blocks=blocks, in_flight=shared_bytes)

    def _window_bytes(self, blocks: int, stages: int) -> int:
        """Return the bytes for which a launch takes about ``TARGET_SECONDS``, at a latency of 1 µs per stage."""
        target_bytes = int(TARGET_SECONDS * blocks * stages * STAGE_BYTES / 1e-6)
        min_bytes = blocks * stages * STAGE_BYTES
        return max(min_bytes, min(target_bytes, self._buffer_bytes // 2)) // WORD_BYTES * WORD_BYTES

    def measure_host(self) -> Iterator[Rate]:
        """Measure transfers between host and device, from page-locked and from pageable memory."""
        to_device, to_host = self._gpu.copy_to_device, self._gpu.copy_to_host
        buffer, size = self._buffer, min(TRANSFER_BYTES, self._buffer_bytes)
        with self._gpu.pinned_memory(size) as pinned_address:
            send = partial(to_device, buffer, pinned_address, size)
            fetch = partial(to_host, pinned_address, buffer, size)
            yield self._rate_by_events("host_to_device_pinned", "host to device, page-locked", size, None, send)
            yield self._rate_by_events("device_to_host_pinned", "device to host, page-locked", size, None, fetch)
        pageable = np.ones(size, np.uint8)
        pageable_address = pageable.ctypes.data
        send = partial(to_device, buffer, pageable_address, size)
        fetch = partial(to_host, pageable_address, buffer, size)
        yield self._rate_by_clock("host_to_device_pageable", "host to device, pageable", size, send)
        yield self._rate_by_clock("device_to_host_pageable", "device to host, pageable", size, fetch)

    def _rate_by_events(
        self, key: str, title: str, size: int, limit: float | None, enqueue: Callable[[], None]
    ) -> Rate:
        """Time by events in the stream."""
        with self._gpu.event_pair() as (start, end):

            def time_once() -> float:
                self._gpu.record(start)
                enqueue()
                self._gpu.record(end)
                return self._gpu.seconds_between(start, end)

            return Rate.from_times(key, title, size, self._repeat_times(time_once), limit)

    def _rate_by_clock(self, key: str, title: str, size: int, enqueue: Callable[[], None]) -> Rate:
        """Time by the host's clock, until the GPU has done all."""

        def time_once() -> float:
            start = time.perf_counter()
            enqueue()
            self._gpu.synchronize()
            return time.perf_counter() - start

        return Rate.from_times(key, title, size, self._repeat_times(time_once))

    def _repeat_times(self, time_once: Callable[[], float]) -> list[float]:
        """Return the seconds of the repeats; a first one does not count."""
        return [time_once() for _ in range(self._repeats + 1)][1:]


def buffer_bytes(gpu: Gpu) -> int:
    """Return the size of the buffer: 4 GiB, or half of the free memory. Raises BandwidthError if that is too small."""
    size = min(MAX_BUFFER_BYTES, gpu.free_memory() // 2) & -4096
    if size < MIN_L2_MULTIPLE * gpu.properties.l2_bytes:
        raise BandwidthError(
            f"the free GPU memory allows only a buffer of {size >> 20} MiB, which is too small compared with L2;"
            " end other programs on this GPU"
        )
    return size


def sweep_points(gpu: Gpu) -> list[tuple[int, int]]:
    """Return the pairs of blocks and stages to measure: 1 to 8 blocks per SM, from one stage to all that fit."""
    sms = gpu.properties.sms
    block_counts = sorted({1, 4, 16, max(1, sms // 4), max(1, sms // 2), sms, 2 * sms, 4 * sms, 8 * sms})
    stage_counts = [stages for stages in STAGES if stages * STAGE_BYTES <= gpu.properties.shared_bytes]
    return [(blocks, stages) for blocks in block_counts for stages in stage_counts]


def _u64(value: int) -> Argument:
    return ctypes.c_uint64(value)


def _word_count(size: int) -> Argument:
    """Return the number of words in ``size`` bytes."""
    return ctypes.c_uint64(size // WORD_BYTES)


def _u32(value: int) -> Argument:
    return ctypes.c_uint32(value)


def measure_disk(folder: Path, size: int, repeats: int) -> Iterator[Rate]:
    """Write and read a file of ``size`` bytes in ``folder``; it is removed again. Raises BandwidthError."""
    size = max(CHUNK_BYTES, size // CHUNK_BYTES * CHUNK_BYTES)
    try:
        handle, path = tempfile.mkstemp(prefix="tui-probe-bandwidth-", dir=folder)
        os.close(handle)
    except OSError as error:
        raise BandwidthError(f"{folder}: {error.strerror}; pass a writable directory with --disk") from error
    try:
        yield _write_rate(path, size, repeats)
        yield _read_rate(path, size, repeats)
    except OSError as error:
        raise BandwidthError(f"{path}: {error.strerror}; pass another directory with --disk") from error
    finally:
        Path(path).unlink()


def _write_rate(path: str, size: int, repeats: int) -> Rate:
    times = []
    with _chunk() as chunk, _open_file(path, os.O_WRONLY) as (file, is_direct):
        for _ in range(repeats):
            start_time = time.perf_counter()
            os.lseek(file, 0, os.SEEK_SET)
            for _ in range(size // CHUNK_BYTES):
                if os.write(file, chunk) != CHUNK_BYTES:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
            times.append(time.perf_counter() - start_time)
    return Rate.from_times("disk_write", f"disk, write{_cache_remark(is_direct)}", size, times)


def _read_rate(path: str, size: int, repeats: int) -> Rate:
    times = []
    with _chunk() as chunk, _open_file(path, os.O_RDONLY) as (file, is_direct):
        for _ in range(repeats):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.lseek(file, 0, os.SEEK_SET)
            start = time.perf_counter()
            while os.readv(file, [chunk]):
                pass
            times.append(time.perf_counter() - start)
    return Rate.from_times("disk_read", f"disk, read{_cache_remark(is_direct)}", size, times)


@contextmanager
def _open_file(path: str, flags: int) -> Iterator[tuple[int, bool]]:
    """Open a file, past the page cache (O_DIRECT) if its file system can; also yield whether it can."""
    try:
        file, is_direct = os.open(path, flags | os.O_DIRECT), True
    except OSError:
        file, is_direct = os.open(path, flags), False
    try:
        yield file, is_direct
    finally:
        os.close(file)


@contextmanager
def _chunk() -> Iterator[mmap.mmap]:
    """Yield page-aligned memory, as O_DIRECT needs; not all zeros, which some file systems do not store."""
    with mmap.mmap(-1, CHUNK_BYTES) as chunk:
        chunk.write(os.urandom(1 << 16) * (CHUNK_BYTES >> 16))
        yield chunk


def _cache_remark(is_direct: bool) -> str:
    """Return a remark where the page cache was not avoided, else ""."""
    return "" if is_direct else " (through the page cache)"

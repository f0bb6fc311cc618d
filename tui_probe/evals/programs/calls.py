"""Call operations again and again, one after another, and write what the host and the stream wait for in each call.

A line of JSON for each operation, times in microseconds: ``call`` until the call that launches comes back, ``total``
until the result is there, both by the host, one call at a time; ``stream`` between two events around the call, while
the GPU is kept busy ahead, so that it holds nothing of the host. ``sums`` needs the CUDA driver only, the others
PyTorch and Triton.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from typing import TYPE_CHECKING

from gpu import SM_COUNT, DriverError, Gpu

if TYPE_CHECKING:
    from collections.abc import Callable

OPERATIONS = ("attn", "gmm", "conv", "gemm", "sums")
WARM_UP = 3
AHEAD_BYTES, AHEAD = 1 << 28, 24
"""Bytes and number of memsets that keep the GPU busy for some ms, so that all timed calls are queued behind them."""


def sums(gpu: Gpu, size: int) -> tuple[Callable[[], None], Callable[[], bool]]:
    """Sums of ``size`` numbers by each of that many threads."""
    from blocks import PTX, UNCHANGED

    blocks, threads = gpu.attribute(SM_COUNT), 128
    source, output = gpu.allocate(4 * blocks * threads * size), gpu.allocate(4 * blocks * threads)
    gpu.call("cuMemsetD32_v2", source, ctypes.c_uint32(0), ctypes.c_size_t(blocks * threads * size))
    gpu.call("cuMemsetD32_v2", output, ctypes.c_uint32(1), ctypes.c_size_t(blocks * threads))
    function, count = gpu.function(PTX, "accumulate"), ctypes.c_uint32(size)

    def launch() -> None:
        gpu.launch(function, blocks, threads, source, output, count, *UNCHANGED)

    return launch, lambda: not any(gpu.read_memory(output, 4 * blocks * threads))


def by_host(gpu: Gpu, launch: Callable[[], None], times: int) -> tuple[list[float], list[float]]:
    """Measure the host's time until the call returns, and until all is done, in microseconds."""
    calls, totals = [], []
    for _ in range(times):
        begin = time.perf_counter_ns()
        launch()
        return_time = time.perf_counter_ns()
        gpu.synchronize()
        calls.append((return_time - begin) / 1e3)
        totals.append((time.perf_counter_ns() - begin) / 1e3)
    return calls, totals


def by_stream(gpu: Gpu, launch: Callable[[], None], times: int, ahead: int) -> list[float]:
    """Measure the time between two events around each call, less that of two events by themselves."""
    memory = gpu.allocate(AHEAD_BYTES) if ahead else None
    pairs = [(gpu.event(), gpu.event()) for _ in range(2 * times)]
    for _ in range(ahead):
        gpu.call("cuMemsetD8Async", memory, ctypes.c_ubyte(0), ctypes.c_size_t(AHEAD_BYTES), None)
    for place, (start, end) in enumerate(pairs):
        gpu.record(start)
        if place % 2:
            launch()
        gpu.record(end)
    gpu.synchronize()
    durations = [1e3 * gpu.milliseconds(start, end) for start, end in pairs]
    event_overhead = sorted(durations[::2])[times // 2]  # median of pairs without a launch between them
    return [max(time - event_overhead, 0.0) for time in durations[1::2]]


def main() -> int:
    parser = argparse.ArgumentParser(description="Call operations repeatedly and time each call.")
    parser.add_argument("operations", nargs="+", choices=OPERATIONS)
    parser.add_argument("--times", type=int, default=20, help="default %(default)s")
    parser.add_argument("--size", type=int, default=4096, help="numbers that each thread adds; default %(default)s")
    parser.add_argument(
        "--ahead", type=int, default=AHEAD, help="memsets that run before timed launches; default %(default)s"
    )
    options = parser.parse_args()
    try:
        gpu = Gpu()
        results = [timed(gpu, operation, options) for operation in options.operations]
    except (DriverError, ImportError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0 if all(results) else 1


def timed(gpu: Gpu, operation: str, options: argparse.Namespace) -> bool:
    """Write the line of one operation; returns whether its result is right."""
    if operation == "sums":
        launch, is_right = sums(gpu, options.size)
    else:
        from kernels_triton import OPERATIONS as BY_TRITON

        launch, is_right = BY_TRITON[operation]()
    for _ in range(WARM_UP):
        launch()
    gpu.synchronize()
    calls, totals = by_host(gpu, launch, options.times)
    stream = by_stream(gpu, launch, options.times, options.ahead)
    has_right_result = is_right()
    line = {"latency": operation, "right": has_right_result, "call": calls, "total": totals, "stream": stream}
    print(json.dumps(line), flush=True)
    return has_right_result


if __name__ == "__main__":
    sys.exit(main())

"""Windows of steps of one loop, which ``tests.bench.steady`` requests one at a time.

    program → bench   ready                     the loop is warm
    bench → program   SECONDS                   measure steps for this long
    program → bench   {"step": ms, "mean": ms, "cpu": ms, "instructions": count or null, "steps": count}

Requests come on stdin, answers go to stdout; the program ends at the end of stdin. ``step`` is the median time of a
step to the end of its kernels, ``mean`` their mean. ``cpu`` and ``instructions`` are medians of what all threads of the
process take until the step is enqueued: a wait for the GPU, which spins, does not count.
``STEADY_CPUS`` has the processors that the process may use, such as ``12,13``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import statistics
import struct
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

PASSED_OVER = 3
"""First steps of a window that do not count: the GPU and the caches come from another process."""
LEAST_STEPS = 5
_SYSCALL = {"x86_64": 298, "aarch64": 241}
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6


def pin_processors() -> None:
    """Use the given processors only; call it before libraries start threads, which keep them."""
    if given := os.environ.get("STEADY_CPUS"):
        os.sched_setaffinity(0, map(int, given.split(",")))


class Instructions:
    """Instructions of this process outside of the kernel, with those of threads that it starts from now on."""

    def __init__(self) -> None:
        attributes = bytearray(128)  # struct perf_event_attr: type hardware, size, instructions, no sampling, flags
        struct.pack_into("=IIQQQQ", attributes, 0, 0, len(attributes), 1, 0, 0, 0)
        struct.pack_into("=Q", attributes, 40, _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR)
        number = _SYSCALL.get(platform.machine())
        buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
        arguments = [*map(ctypes.c_long, (0, -1, -1, 0))]  # this process, any processor, no group, no flags
        self._counter = ctypes.CDLL(None).syscall(ctypes.c_long(number), buffer, *arguments) if number else -1

    def read(self) -> int | None:
        """None if the system permits no counter."""
        return struct.unpack("=Q", os.read(self._counter, 8))[0] if self._counter >= 0 else None


def serve_windows(
    step: Callable[[], object],
    wait: Callable[[], object],
    instructions: Instructions,
    warm_up: float,
    profiler: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> None:
    """Answer requests until there are no more. Each window has its own ``profiler``, whose start does not count."""
    measure(step, wait, instructions, warm_up)
    print("ready", flush=True)
    for request in sys.stdin:
        with profiler():
            answer = measure(step, wait, instructions, float(request))
        print(json.dumps(answer), flush=True)


def measure(
    step: Callable[[], object], wait: Callable[[], object], instructions: Instructions, seconds: float
) -> dict[str, float | None]:
    """Run steps for this long, at least ``LEAST_STEPS``."""
    for _ in range(PASSED_OVER):
        step()
        wait()
    times: list[float] = []
    cpu: list[float] = []
    counts: list[int] = []
    end = time.perf_counter() + seconds
    while len(times) < LEAST_STEPS or time.perf_counter() < end:
        count, used, begun = instructions.read(), time.process_time_ns(), time.perf_counter_ns()
        step()
        used_later, count_later = time.process_time_ns(), instructions.read()
        wait()
        times.append((time.perf_counter_ns() - begun) / 1e6)
        cpu.append((used_later - used) / 1e6)
        if count is not None and count_later is not None:
            counts.append(count_later - count)
    return {
        "step": statistics.median(times),
        "mean": statistics.fmean(times),
        "cpu": statistics.median(cpu),
        "instructions": statistics.median(counts) if counts else None,
        "steps": len(times),
    }

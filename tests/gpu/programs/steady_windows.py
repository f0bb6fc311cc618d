"""Windows of steps of one loop, which ``tests.bench.steady`` requests one at a time.

    program → bench   ready                     the loop is warm
    bench → program   SECONDS                   measure steps for this long
    program → bench   {"step": ms, "mean": ms, "cpu": ms, "instructions": count or null, "steps": count}
    bench → program   SECONDS switched          the same, with recording switched on or off before each step
    program → bench   {"on": {"step": ms, …}, "off": {"step": ms, …}}

Requests come on stdin, answers go to stdout; the program ends at the end of stdin. ``step`` is the median time of a
step to the end of its kernels, ``mean`` their mean. ``cpu`` and ``instructions`` are medians of what all threads of the
process take until the step is enqueued: a wait for the GPU, which spins, does not count. Steps with recording on and
off come in pairs, in random order, so that other work of the machine slows both. The switch is the one of the control
page (``tui-probe help control-page``). Unlike ``tui-probe ctl on`` it does not let the schedules of probes start anew.
``STEADY_CPUS`` has the processors that the process may use, such as ``12,13``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import platform
import random
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
CONTROL_ON = 24
"""Byte offset of the switch in the control page of a run."""
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


class RecordingSwitch:
    """Switches the recording of the run that started this process."""

    def __init__(self) -> None:
        descriptor = os.open(os.environ["TUI_PROBE_CONTROL"], os.O_RDWR)
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)
        os.close(descriptor)

    def set(self, is_on: bool) -> None:
        struct.pack_into("<Q", self._page, CONTROL_ON, is_on)


class Samples:
    """Measured steps."""

    def __init__(self, step: Callable[[], object], wait: Callable[[], object], instructions: Instructions) -> None:
        self._step, self._wait, self._instructions = step, wait, instructions
        self.times: list[float] = []
        self._cpu: list[float] = []
        self._counts: list[int] = []

    def skip(self, count: int) -> None:
        """Run steps that do not count."""
        for _ in range(count):
            self._step()
            self._wait()

    def add(self) -> None:
        """Run and measure a step."""
        count, used, begun = self._instructions.read(), time.process_time_ns(), time.perf_counter_ns()
        self._step()
        used_later, count_later = time.process_time_ns(), self._instructions.read()
        self._wait()
        self.times.append((time.perf_counter_ns() - begun) / 1e6)
        self._cpu.append((used_later - used) / 1e6)
        if count is not None and count_later is not None:
            self._counts.append(count_later - count)

    @property
    def window(self) -> dict[str, float | None]:
        return {
            "step": statistics.median(self.times),
            "mean": statistics.fmean(self.times),
            "cpu": statistics.median(self._cpu),
            "instructions": statistics.median(self._counts) if self._counts else None,
            "steps": len(self.times),
        }


def serve_windows(
    step: Callable[[], object],
    wait: Callable[[], object],
    instructions: Instructions,
    warm_up: float,
    profiler: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext,
) -> None:
    """Answer requests until there are no more. Each window has its own ``profiler``, whose start does not count."""

    def new_samples() -> Samples:
        return Samples(step, wait, instructions)

    measure(new_samples(), warm_up)
    print("ready", flush=True)
    for request in sys.stdin:
        seconds, *switched = request.split()
        if switched:
            print(json.dumps(measure_switched(new_samples(), new_samples(), float(seconds))), flush=True)
            continue
        with profiler():
            answer = measure(new_samples(), float(seconds))
        print(json.dumps(answer), flush=True)


def measure(samples: Samples, seconds: float) -> dict[str, float | None]:
    """Run steps for this long, at least ``LEAST_STEPS``."""
    samples.skip(PASSED_OVER)
    end = time.perf_counter() + seconds
    while len(samples.times) < LEAST_STEPS or time.perf_counter() < end:
        samples.add()
    return samples.window


def measure_switched(on: Samples, off: Samples, seconds: float) -> dict[str, dict[str, float | None]]:
    """Run pairs of steps for this long, at least ``LEAST_STEPS``; recording is on again at the end."""
    switch = RecordingSwitch()
    on.skip(PASSED_OVER)
    end = time.perf_counter() + seconds
    while len(on.times) < LEAST_STEPS or time.perf_counter() < end:
        for samples in random.sample([on, off], 2):
            switch.set(samples is on)
            samples.add()
    switch.set(True)
    return {"on": on.window, "off": off.window}

"""Runs every measurement on a small buffer with the driver named on the command line; prints what was moved."""

import ctypes
import json
import sys
from pathlib import Path

import numpy as np

from tui_probe.bandwidth.measure import STAGES, Gpu, GpuBench

ROOM = 1 << 19


class SimulatedGpu(Gpu):
    """Its events have hardly any time between them, or none."""

    def seconds_between(self, start: ctypes.c_void_p, end: ctypes.c_void_p) -> float:
        return max(super().seconds_between(start, end), 1e-6)


def main() -> None:
    gpu = SimulatedGpu(Path(sys.argv[1]))
    with gpu.device_memory(ROOM) as buffer:
        bench = GpuBench(gpu, 1, buffer, ROOM)
        rates = [*bench.measure_memory(), *(bench.measure_to_shared(2, stages) for stages in STAGES[:3])]
        content = np.empty(ROOM // 4, np.uint32)
        gpu.copy_to_host(content.ctypes.data, buffer, ROOM)
        gpu.synchronize()
        rates += bench.measure_host()
        sys.stdout.write(json.dumps({"moved": {rate.key: rate.size for rate in rates}, "sum": int(content.sum())}))


main()

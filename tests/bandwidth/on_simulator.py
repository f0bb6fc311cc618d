"""Runs every measurement on a small buffer with the driver named on the command line; prints what was moved."""

import json
import sys
from pathlib import Path

import numpy as np

from tui_probe.bandwidth.device import Gpu
from tui_probe.bandwidth.measure import STAGES, GpuBench

ROOM = 1 << 19


def main() -> None:
    gpu = Gpu(Path(sys.argv[1]))
    with gpu.memory(ROOM) as buffer:
        bench = GpuBench(gpu, 1, buffer, ROOM)
        rates = [*bench.memory(), *(bench.to_shared(2, stages) for stages in STAGES[:3])]
        words = np.empty(ROOM // 4, np.uint32)
        gpu.copy_to_host(words.ctypes.data, buffer, ROOM)
        gpu.synchronize()
        rates += bench.host()
        sys.stdout.write(json.dumps({"moved": {rate.key: rate.size for rate in rates}, "sum": int(words.sum())}))


main()

"""Dense matrix products of half precision, timed on the GPU; a line of JSON each, times in milliseconds."""

from __future__ import annotations

import json
import sys

import torch

SHAPES = ((4096, 700, 100_000), (4096, 700, 400_000))
WARM_UP, RUNS = 3, 20


def main() -> int:
    if not torch.cuda.is_available():
        print("products.py: PyTorch sees no GPU", file=sys.stderr)
        return 1
    for m, k, n in SHAPES:
        a, b = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (k, n)))
        result = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        for _ in range(WARM_UP):
            torch.matmul(a, b, out=result)
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(RUNS)]
        for start, end in pairs:
            start.record()
            torch.matmul(a, b, out=result)
            end.record()
        torch.cuda.synchronize()
        times = [start.elapsed_time(end) for start, end in pairs]
        device = torch.cuda.get_device_name()
        print(json.dumps({"product": [m, k, n], "dtype": "bf16", "device": device, "milliseconds": times}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

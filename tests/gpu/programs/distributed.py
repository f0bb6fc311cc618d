"""Two processes, each with a Triton kernel on a GPU of its own where there are two, which then add up their results.

`distributed.py [LAUNCHES]`. Prints one line per process, in the order of their ranks.
"""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
import triton
import triton.language as tl

PROCESSES, LENGTH = 2, 1 << 20


@triton.jit
def scale(x, y, factor, length, BLOCK: tl.constexpr):
    """y = factor * x."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < length) * factor, mask=at < length)


def work(rank: int, launches: int, folder: str) -> None:
    devices = torch.cuda.device_count()
    torch.cuda.set_device(rank % devices)
    backend, met = "nccl" if devices >= PROCESSES else "gloo", Path(folder, "rendezvous").as_uri()
    distributed.init_process_group(backend, init_method=met, rank=rank, world_size=PROCESSES)
    x = torch.arange(LENGTH, device="cuda", dtype=torch.float32)
    y = torch.empty_like(x)
    for _ in range(launches):
        scale[(LENGTH // 1024,)](x, y, rank + 1, LENGTH, BLOCK=1024)
    total = y.double().sum()
    if devices < PROCESSES:
        total = total.cpu()
    distributed.all_reduce(total)
    for turn in range(PROCESSES):
        distributed.barrier()
        if turn == rank:
            print(rank, f"{y.double().sum().item():.0f}", f"{total.item():.0f}", flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # a file, not a port: several of this program may run at a time
        multiprocessing.spawn(work, args=(int(sys.argv[1]) if len(sys.argv) > 1 else 4, folder), nprocs=PROCESSES)

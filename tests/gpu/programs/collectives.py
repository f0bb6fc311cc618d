"""Two processes with a GPU each, which pass data between them by NCCL in every way, between products of their own.

Prints one line per process, in the order of their ranks: a sum of the bits of all that came.
"""

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing

ROUNDS, SIZES = 20, (256, 1 << 16, 1 << 22)


def bits(tensor: torch.Tensor) -> int:
    return int(tensor.view(torch.int32).long().sum().item())


def all_ways(rank: int, x: torch.Tensor) -> list[torch.Tensor]:
    """Return the result of each collective on this rank; ``x`` is its input."""
    both, half, other = x.new_empty(2 * len(x)), x.new_empty(len(x) // 2), x.new_empty(len(x))
    total, received = x.clone(), x.clone()
    dist.all_reduce(total)
    dist.broadcast(received, src=1)
    dist.all_gather_into_tensor(both, x)
    dist.reduce_scatter_tensor(half, x)
    turns = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]
    for request in dist.batch_isend_irecv(turns):
        request.wait()
    return [total, received, both, half, other]


def work(rank: int, folder: str) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=Path(folder, "rendezvous").as_uri(), rank=rank, world_size=2)
    torch.manual_seed(rank)
    weight, seen = torch.randn(1024, 1024, device="cuda"), 0
    for _ in range(ROUNDS):
        weight = torch.nn.functional.normalize(weight @ weight.T)
        for size in SIZES:
            x = weight.flatten().repeat(-(-size // weight.numel()))[:size].contiguous()
            seen += sum(bits(tensor) for tensor in all_ways(rank, x))
    for turn in range(2):
        dist.barrier()
        if turn == rank:
            print(rank, seen, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:  # a file, not a port: several of this program may run at a time
        multiprocessing.spawn(work, args=(folder,), nprocs=2)

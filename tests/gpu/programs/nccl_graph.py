"""An all-reduce of one rank in a CUDA graph: destroying the communicator waits until nothing holds the graph."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(1000, device="cuda")
dist.all_reduce(x)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
    dist.all_reduce(y)
    z = y + 1
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
print("nccl", f"{z.sum().item():.1f}")
graph.reset()
begun = time.monotonic()
dist.destroy_process_group()
print("destroyed", time.monotonic() - begun < 30)

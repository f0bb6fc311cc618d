"""An all-reduce of one rank in a CUDA graph: destroying the communicator waits until nothing holds the graph."""

import os
import time

import torch
import torch.distributed as dist

os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ.get("MASTER_PORT", "29517")}
dist.init_process_group("nccl", rank=0, world_size=1)
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

"""NCCL with a single GPU: collectives between products."""

import os

import torch
import torch.distributed as dist

os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ.get("MASTER_PORT", "29521")}
dist.init_process_group("nccl", rank=0, world_size=1)
torch.manual_seed(0)
weight = torch.randn(1024, 1024, device="cuda")
for _ in range(500):
    gradient = weight.T @ weight
    dist.all_reduce(gradient)
    weight = torch.nn.functional.normalize(weight + 1e-3 * gradient)
torch.cuda.synchronize()
print(f"{weight.abs().mean().item():.3g}")
dist.destroy_process_group()

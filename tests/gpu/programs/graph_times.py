"""Kernels of some microseconds to some hundred, first by themselves, then in a CUDA graph that does the same."""

import torch

torch.manual_seed(0)
x = torch.randn(4096, 4096, device="cuda")
small = torch.randn(64, 64, device="cuda")


def step() -> torch.Tensor:
    """A sum over rows, one over few numbers, and two kernels that each write all of 64 MB."""
    return torch.softmax(x * 2 + 1, dim=1).sum() + small.sum()


for _ in range(300):
    total = step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    total = step()
for _ in range(2000):
    graph.replay()
torch.cuda.synchronize()
print(f"{total.item():.4f}")

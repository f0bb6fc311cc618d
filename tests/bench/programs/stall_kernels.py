"""Kernels of PyTorch, cuBLAS, CUB and Triton, six launches each, for the comparison of waits with Nsight Compute."""

import sys
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(Path(__file__).parents[2] / "gpu" / "programs"))

from tiles import matmul

RUNS = 6
SIZE = 2048
torch.manual_seed(0)
q, k, v = (torch.randn(4, 16, 2048, 64, device="cuda", dtype=torch.float16) for _ in range(3))
a, b = (torch.randn(2 * SIZE, 2 * SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
c = torch.empty(SIZE, SIZE, device="cuda")
rows = torch.randn(8192, 4096, device="cuda")
numbers = torch.randint(0, 1 << 30, (1 << 23,), device="cuda", dtype=torch.int32)
scale = torch.ones(4096, device="cuda")
for _ in range(RUNS):
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        attention = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    product = a @ b
    normalised = torch.nn.functional.layer_norm(rows, (4096,), scale, scale)
    sums = torch.cumsum(rows.view(-1), 0)
    matmul[(SIZE // 64, SIZE // 64)](a, b, c, SIZE, SIZE, BLOCK=64)
for _ in range(2):  # four launches of the kernel each
    ordered = numbers.sort().values
torch.cuda.synchronize()
print(*(f"{result.double().sum().item():.6g}" for result in (attention, product, normalised, sums, c, ordered)))

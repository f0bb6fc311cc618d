"""Triton: a softmax and an autotuned matrix product."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(output, values, columns, size: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, size)
    mask = offsets < columns
    row_values = tl.load(values + row * columns + offsets, mask, other=-float("inf"))
    exponents = tl.exp(row_values - tl.max(row_values, 0))
    tl.store(output + row * columns + offsets, exponents / tl.sum(exponents, 0), mask)


@triton.autotune([triton.Config({"tile": tile}, num_warps=warps) for tile in (32, 64) for warps in (4, 8)], key=["n"])
@triton.jit
def product(a, b, c, n, tile: tl.constexpr):
    rows = tl.program_id(0) * tile + tl.arange(0, tile)
    columns = tl.program_id(1) * tile + tl.arange(0, tile)
    inner = tl.arange(0, 32)
    total = tl.zeros((tile, tile), tl.float32)
    for start in range(0, n, 32):
        left = tl.load(a + rows[:, None] * n + start + inner[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16))


torch.manual_seed(0)
values = torch.randn(4096, 1000, device="cuda")
output = torch.empty_like(values)
left, right = (torch.randn(1024, 1024, device="cuda", dtype=torch.float16) for _ in range(2))
result = torch.empty_like(left)
for _ in range(1000):
    softmax[(4096,)](output, values, 1000, 1024)
    product[lambda meta: (1024 // meta["tile"], 1024 // meta["tile"])](left, right, result, 1024)
print(f"{output.max().item():.6g} {result.float().abs().mean().item():.4g}")

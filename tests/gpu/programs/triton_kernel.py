"""A Triton vector addition and a matmul with tensor cores; prints checksums."""

import torch
import triton
import triton.language as tl
from tiles import matmul


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


torch.manual_seed(0)
n = 100_000
x = torch.arange(n, device="cuda", dtype=torch.float32)
out = torch.empty_like(x)
add[(triton.cdiv(n, 1024),)](x, x, out, n, BLOCK=1024)
print("add", out.double().sum().item())
size = 512
a = torch.ones((size, size), device="cuda", dtype=torch.float16)
c = torch.empty((size, size), device="cuda", dtype=torch.float32)
for _ in range(3):
    matmul[(size // 64, size // 64)](a, a, c, size, size, BLOCK=64)
print("matmul", c.double().sum().item())

"""Matrix products in Triton of several sizes; prints the sizes."""

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, N, K, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        inner = k + tl.arange(0, BLOCK)
        left = tl.load(a + rows[:, None] * K + inner[None, :])
        right = tl.load(b + inner[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


for m, n, k in ((512, 512, 512), (256, 1024, 128), (2048, 2048, 2048)):
    a = torch.ones((m, k), device="cuda", dtype=torch.float16)
    b = torch.ones((k, n), device="cuda", dtype=torch.float16)
    c = torch.empty((m, n), device="cuda", dtype=torch.float32)
    product[(m // 64, n // 64)](a, b, c, n, k, BLOCK=64)
    torch.cuda.synchronize()
    assert (c == k).all()
    print(m, n, k)

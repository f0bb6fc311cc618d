"""A product of two matrices in Triton whose sum overflows in one row, in its third step; prints block, row and step."""

import torch
import triton
import triton.language as tl


@triton.jit
def overflowing(a, b, c, n, k, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, k, BLOCK):
        left = tl.load(a + rows[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


BLOCK, SIZE, ROW, STEP = 64, 256, 64 + 37, 2
left = torch.ones((SIZE, SIZE), device="cuda", dtype=torch.bfloat16)
right = torch.ones((SIZE, SIZE), device="cuda", dtype=torch.bfloat16)
left[ROW, STEP * BLOCK : STEP * BLOCK + 2] = 3e38
total = torch.empty((SIZE, SIZE), device="cuda", dtype=torch.float32)
overflowing[(SIZE // BLOCK, SIZE // BLOCK)](left, right, total, SIZE, SIZE, BLOCK=BLOCK)
assert total.isinf().sum() == SIZE
print(ROW // BLOCK, ROW % BLOCK, STEP)

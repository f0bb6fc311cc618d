"""A copy kernel of Gluon, Triton's language with explicit layouts."""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def scale(x, y, count, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(y + at, 2 * gl.load(x + at, mask=at < count), mask=at < count)


x = torch.arange(10000, dtype=torch.float32, device="cuda")
y = torch.zeros_like(x)
scale[(40,)](x, y, x.numel(), BLOCK=256, num_warps=4)
assert torch.equal(y, 2 * x)
print("ok")

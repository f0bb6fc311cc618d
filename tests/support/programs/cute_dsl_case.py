"""An elementwise kernel of the CuTe DSL."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    size, _, _ = cute.arch.block_dim()
    at = block * size + thread
    if at < cute.size(c):
        c[at] = a[at] + b[at]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add_kernel(a, b, c).launch(grid=(16, 1, 1), block=(256, 1, 1))


a, b = torch.arange(4096.0, device="cuda"), torch.ones(4096, device="cuda")
c = torch.zeros_like(a)
assert cutlass is not None
add(from_dlpack(a), from_dlpack(b), from_dlpack(c))
torch.cuda.synchronize()
assert torch.equal(c, a + b)
print("ok")

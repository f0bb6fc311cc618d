"""An elementwise kernel of TileLang."""

import tilelang
import tilelang.language as T  # noqa: N812 - as its users do
import torch


@tilelang.jit(out_idx=[-1])
def add(count: int, block: int):
    @T.prim_func
    def kernel(a: T.Tensor((count,), "float32"), b: T.Tensor((count,), "float32"), c: T.Tensor((count,), "float32")):
        with T.Kernel(T.ceildiv(count, block), threads=128) as at:
            for i in T.Parallel(block):
                c[at * block + i] = a[at * block + i] + b[at * block + i]

    return kernel


a, b = torch.arange(4096.0, device="cuda"), torch.ones(4096, device="cuda")
assert torch.equal(add(4096, 256)(a, b), a + b)
print("ok")

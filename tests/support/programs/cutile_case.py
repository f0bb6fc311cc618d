"""A tile kernel of cuTile (cuda-tile)."""

import cuda.tile as ct
import torch


@ct.kernel
def add(a, b, c, size: ct.Constant[int]):
    at = ct.bid(0)
    left = ct.load(a, index=(at,), shape=(size,))
    right = ct.load(b, index=(at,), shape=(size,))
    ct.store(c, index=(at,), tile=left + right)


a, b = torch.arange(4096.0, device="cuda"), torch.ones(4096, device="cuda")
c = torch.zeros_like(a)
ct.launch(torch.cuda.current_stream(), (16, 1, 1), add, (a, b, c, 256))
torch.cuda.synchronize()
assert torch.equal(c, a + b)
print("ok")

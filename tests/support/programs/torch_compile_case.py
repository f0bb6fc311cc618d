"""A function under ``torch.compile``, whose kernels Triton compiles."""

import torch


@torch.compile
def normalized(x, weight):
    return torch.nn.functional.silu(x * weight) / x.square().mean(-1, keepdim=True).sqrt()


torch.manual_seed(0)
x, weight = torch.randn(512, 1024), torch.randn(1024)
expected = torch.nn.functional.silu(x * weight) / x.square().mean(-1, keepdim=True).sqrt()
torch.testing.assert_close(normalized(x.cuda(), weight.cuda()).cpu(), expected, rtol=1e-4, atol=1e-4)
print("ok")

"""RMS norm of FlashInfer, compiled when it is first called."""

import flashinfer
import torch

torch.manual_seed(0)
x, weight = (
    torch.randn(64, 512, device="cuda", dtype=torch.float16),
    torch.ones(512, device="cuda", dtype=torch.float16),
)
expected = (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).half()
torch.testing.assert_close(flashinfer.norm.rmsnorm(x, weight), expected, rtol=1e-2, atol=1e-2)
print("ok")

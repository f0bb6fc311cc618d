"""RMS norm of Liger kernels, next to its definition."""

import torch
from liger_kernel.transformers.rms_norm import LigerRMSNorm

torch.manual_seed(0)
x = torch.randn(64, 512, device="cuda")
norm = LigerRMSNorm(512).cuda()
expected = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
torch.testing.assert_close(norm(x), expected, rtol=1e-3, atol=1e-4)
print("ok")

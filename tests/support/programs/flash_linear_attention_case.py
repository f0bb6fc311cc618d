"""Linear attention of flash-linear-attention, next to its definition."""

import torch
from fla.ops.linear_attn import chunk_linear_attn

torch.manual_seed(0)
q, k, v = (torch.randn(1, 128, 2, 64, device="cuda") / 8 for _ in range(3))
out, _ = chunk_linear_attn(q, k, v, scale=1.0, normalize=False)
scores = torch.einsum("bthd,bshd->bhts", q, k).tril()
torch.testing.assert_close(out, torch.einsum("bhts,bshd->bthd", scores, v), rtol=2e-2, atol=2e-2)
print("ok")

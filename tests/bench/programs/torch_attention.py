"""PyTorch: attention through each of its back ends."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
query, key, value = (torch.randn(4, 16, 1024, 64, device="cuda", dtype=torch.float16) for _ in range(3))
for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
    with sdpa_kernel(backend):
        for _ in range(200):
            result = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    print(backend.name, f"{result.float().abs().mean().item():.3g}")

"""Quantization to 4 bits and back by bitsandbytes."""

import bitsandbytes.functional as bnb
import torch

torch.manual_seed(0)
x = torch.randn(1024, 64, device="cuda")
quantized, state = bnb.quantize_4bit(x, quant_type="nf4")
error = (bnb.dequantize_4bit(quantized, state) - x).abs().mean().item()
assert error < 0.2
print(f"{error:.4f}")

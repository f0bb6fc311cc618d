"""A linear layer with weights quantized to 8 bits by torchao."""

import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(128, 64)).cuda().to(torch.bfloat16)
x = torch.randn(32, 128, device="cuda", dtype=torch.bfloat16)
expected = model(x)
quantize_(model, Int8WeightOnlyConfig())
torch.testing.assert_close(model(x), expected, rtol=0.1, atol=0.1)
print("ok")

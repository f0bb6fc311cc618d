"""A small transformer block of PyTorch, forwards and backwards, next to the same in float64 on the host."""

import torch

torch.manual_seed(0)
torch.use_deterministic_algorithms(True, warn_only=True)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 8))
x = torch.randn(256, 64)
expected = model.double()(x.double()).softmax(-1)
model = model.float().cuda()
y = model(x.cuda()).softmax(-1)
y.square().sum().backward()
torch.testing.assert_close(y.double().cpu(), expected, rtol=1e-2, atol=1e-3)
print(f"{y.sum().item():.3f} {model[0].weight.grad.abs().sum().item():.3f}")

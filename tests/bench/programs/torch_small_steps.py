"""PyTorch, eager: a tiny model with Adam, thousands of launches of a few microseconds."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
optimiser = torch.optim.Adam(model.parameters(), foreach=False)
inputs = torch.randn(256, 64, device="cuda")
for _ in range(2500):
    optimiser.zero_grad()
    loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimiser.step()
print(f"{loss.item():.2g}")

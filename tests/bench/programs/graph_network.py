"""PyTorch Geometric: a graph network, gathers and scatters."""

import torch
from torch_geometric.nn import GCNConv

torch.manual_seed(0)
nodes = torch.randn(20_000, 64, device="cuda")
edges = torch.randint(20_000, (2, 200_000), device="cuda")
layers = [GCNConv(64, 64).cuda() for _ in range(3)]
optimiser = torch.optim.Adam([weight for layer in layers for weight in layer.parameters()])
for _ in range(120):
    values = nodes
    for layer in layers:
        values = layer(values, edges).relu()
    loss = values.square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"{loss.item():.1g}")

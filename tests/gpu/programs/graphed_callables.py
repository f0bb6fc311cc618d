"""torch.cuda.make_graphed_callables and a raw CUDAGraph: training steps whose forward and backward are graphs."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 8))
model = model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.linspace(-1, 1, 32 * 64, device="cuda").reshape(32, 64)
graphed = torch.cuda.make_graphed_callables(model, (inputs.clone(),))
for _ in range(6):
    optimizer.zero_grad(set_to_none=True)
    loss = graphed(inputs).square().mean()
    loss.backward()
    optimizer.step()
print("graphed callables", f"{loss.item():.6e}")

layer = torch.nn.Linear(64, 8).cuda()
static = inputs.clone()
graph = torch.cuda.CUDAGraph()
side = torch.cuda.Stream()
with torch.no_grad():
    layer(static)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            other = torch.softmax(static, dim=-1)
        result = layer(static)
        torch.cuda.current_stream().wait_stream(side)
for step in range(20):
    static.copy_(inputs * step)
    graph.replay()
print("raw graph", f"{result.sum().item():.6e}", f"{other.sum().item():.6e}")

"""torch.compile with CUDA graphs: the second and later calls replay a graph."""

import torch


@torch.compile(mode="reduce-overhead")
def model(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.nn.functional.gelu(x @ weight), dim=-1).sum(dim=0)


with torch.no_grad():
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 512 * 256, device="cuda").reshape(512, 256)
    weight = torch.linspace(-1, 1, 256 * 256, device="cuda").reshape(256, 256)
    for _ in range(5):
        torch.compiler.cudagraph_mark_step_begin()
        result = model(x, weight).clone()
    print("compiled", f"{result.double().sum().item():.6f}", f"{result[3].item():.6e}")

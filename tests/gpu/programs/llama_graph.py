"""A Llama of four layers under torch.compile(mode="reduce-overhead"), bf16: generates with one graph per shape."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
WIDTH, HEADS, LAYERS, TOKENS = 512, 8, 4, 128


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up, self.down = (
            nn.Linear(a, b, bias=False) for a, b in ((WIDTH, 1024), (WIDTH, 1024), (1024, WIDTH))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        )
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        inner = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(inner)) * self.up(inner))


model = nn.Sequential(*(Layer() for _ in range(LAYERS))).to("cuda", torch.bfloat16).eval()
compiled = torch.compile(model, mode="reduce-overhead")
x = torch.linspace(-1, 1, TOKENS * WIDTH, device="cuda").reshape(1, TOKENS, WIDTH).to(torch.bfloat16)
with torch.no_grad():
    for _ in range(30):
        torch.compiler.cudagraph_mark_step_begin()
        result = compiled(x).clone()
print("llama", f"{result.double().sum().item():.6e}", f"{result[0, -1, 0].item():.6e}")

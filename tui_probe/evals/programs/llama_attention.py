"""Attention of a Llama layer, with its projections: 128 tokens of 4096 numbers, 32 heads.

The calls that count lie between cudaProfilerStart and cudaProfilerStop.
"""

from __future__ import annotations

import sys

import torch
from torch.nn.functional import linear, scaled_dot_product_attention

TOKENS, WIDTH, HEADS = 128, 4096, 32
WARM_UP, RUNS = 3, 2
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def main() -> int:
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in TYPES:
        print(f"usage: llama_attention.py {'|'.join(TYPES)}", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    x = torch.randn(1, TOKENS, WIDTH).to("cuda", TYPES[name])
    weights = [(torch.randn(WIDTH, WIDTH) * WIDTH**-0.5).to("cuda", TYPES[name]) for _ in range(4)]
    for call in range(WARM_UP + RUNS):
        if call == WARM_UP:
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
        query, key, value = (linear(x, weight).unflatten(-1, (HEADS, -1)).transpose(1, 2) for weight in weights[:3])
        attended = scaled_dot_product_attention(query, key, value, is_causal=True)
        result = linear(attended.transpose(1, 2).flatten(2), weights[3])
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    finite = bool(torch.isfinite(result.cpu()).all())
    print(f"{name}: {'finite' if finite else 'NOT FINITE'}")
    return 0 if finite else 1


if __name__ == "__main__":
    sys.exit(main())

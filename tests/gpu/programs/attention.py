"""Attention forward, eight calls: `attention.py flash|efficient|math|triton`. Prints a checksum."""

import sys

import torch
import triton
import triton.language as tl
from torch.nn.attention import SDPBackend, sdpa_kernel

BATCH, HEADS, LENGTH, WIDTH = 2, 8, 2048, 64
WARM_UP, RUNS = 3, 5
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


@triton.jit
def flash_attention(q, k, v, out, length, scale, WIDTH: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """One block per tile of queries and head; softmax kept as a running maximum and sum."""
    head = tl.program_id(1) * length * WIDTH
    rows = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    columns = tl.arange(0, WIDTH)
    query = tl.load(q + head + rows[:, None] * WIDTH + columns[None, :])
    highest = tl.full((QUERIES,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((QUERIES,), dtype=tl.float32)
    result = tl.zeros((QUERIES, WIDTH), dtype=tl.float32)
    for start in range(0, length, KEYS):
        keys = start + tl.arange(0, KEYS)
        key = tl.load(k + head + keys[None, :] * WIDTH + columns[:, None])
        scores = tl.dot(query, key) * scale
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - new_highest[:, None])
        shrink = tl.exp2(highest - new_highest)
        value = tl.load(v + head + keys[:, None] * WIDTH + columns[None, :])
        result = tl.dot(weights.to(value.dtype), value, result * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        highest = new_highest
    tl.store(out + head + rows[:, None] * WIDTH + columns[None, :], (result / total[:, None]).to(tl.float16))


def triton_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(q)
    scale = WIDTH**-0.5 * 1.4426950408889634  # the kernel's exponentials are powers of two
    flash_attention[(LENGTH // 128, BATCH * HEADS)](q, k, v, out, LENGTH, scale, WIDTH=WIDTH, QUERIES=128, KEYS=64)
    return out


def main() -> None:
    backend = sys.argv[1] if len(sys.argv) > 1 else "triton"
    torch.manual_seed(0)
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, WIDTH, device="cuda", dtype=torch.float16) for _ in range(3))
    for _ in range(WARM_UP + RUNS):
        if backend == "triton":
            result = triton_attention(q, k, v)
        else:
            with sdpa_kernel(BACKENDS[backend]):
                result = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.cuda.synchronize()
    print(backend, f"{result.double().abs().sum().item():.3f}")


main()

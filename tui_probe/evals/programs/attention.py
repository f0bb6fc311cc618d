"""Attention of one shape by one of several implementations, checked against another.

Needs PyTorch, and Triton for its own kernel: a forward pass that keeps a block of queries and streams keys and values.
"""

# mypy: ignore-errors
import argparse
import sys

import torch

SCALE = 0.5


try:
    import triton
    import triton.language as tl
except ImportError:  # PyTorch's own back ends need none
    triton = None

if triton is not None:

    @triton.jit
    def _attn_fwd(
        Q, K, V, OUTPUT, scale, length, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
        STAGES: tl.constexpr,
    ):  # fmt: skip
        base = tl.program_id(1).to(tl.int64) * length * HEAD
        rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
        columns, depth = tl.arange(0, BLOCK_N), tl.arange(0, HEAD)
        query = tl.load(Q + base + rows[:, None] * HEAD + depth[None, :], mask=rows[:, None] < length, other=0.0)
        maximum = tl.full([BLOCK_M], float("-inf"), tl.float32)
        total = tl.zeros([BLOCK_M], tl.float32)
        sums = tl.zeros([BLOCK_M, HEAD], tl.float32)
        for start in tl.range(0, length, BLOCK_N, num_stages=STAGES):
            key_rows = start + columns
            keys = tl.load(
                K + base + key_rows[None, :] * HEAD + depth[:, None], mask=key_rows[None, :] < length, other=0.0
            )
            scores = tl.dot(query, keys) * (scale * 1.44269504)
            scores = tl.where(key_rows[None, :] < length, scores, float("-inf"))
            new_maximum = tl.maximum(maximum, tl.max(scores, 1))
            weights = tl.math.exp2(scores - new_maximum[:, None])
            shrink = tl.math.exp2(maximum - new_maximum)
            total = total * shrink + tl.sum(weights, 1)
            values = tl.load(
                V + base + key_rows[:, None] * HEAD + depth[None, :], mask=key_rows[:, None] < length, other=0.0
            )
            sums = tl.dot(weights.to(values.dtype), values, sums * shrink[:, None])
            maximum = new_maximum
        result = sums / total[:, None]
        place = OUTPUT + base + rows[:, None] * HEAD + depth[None, :]
        tl.store(place, result.to(OUTPUT.type.element_ty), mask=rows[:, None] < length)


def triton_attention(q, k, v, block_m, block_n, stages, warps):
    """The output, by a kernel of Triton: a program per head and block of ``block_m`` queries."""
    result = torch.empty_like(q)
    batch, heads, length, head = q.shape
    grid = (triton.cdiv(length, block_m), batch * heads)
    _attn_fwd[grid](
        q, k, v, result, SCALE, length, HEAD=head, BLOCK_M=block_m, BLOCK_N=block_n, STAGES=stages, num_warps=warps,
        num_stages=stages,
    )  # fmt: skip
    return result


def torch_attention(q, k, v, backend):
    """The output, by one back end of PyTorch and no other."""
    with torch.nn.attention.sdpa_kernel([backend]):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=SCALE)


def attention(q, k, v, options):
    backends = torch.nn.attention.SDPBackend
    if options.variant == "triton":
        return triton_attention(q, k, v, options.block_m, options.block_n, options.stages, options.warps)
    backend = {"flash": backends.FLASH_ATTENTION, "efficient": backends.EFFICIENT_ATTENTION}[options.variant]
    return torch_attention(q, k, v, backend)


def main() -> int:
    parser = argparse.ArgumentParser(description="Attention by one implementation, checked against plain PyTorch.")
    parser.add_argument("variant", choices=("triton", "flash", "efficient"))
    for name, default in (
        ("batch", 4), ("heads", 32), ("length", 4096), ("head", 64), ("block-m", 128), ("block-n", 64), ("stages", 2),
        ("warps", 8),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default, help="default %(default)s")
    options = parser.parse_args()
    torch.manual_seed(42)
    shape = (options.batch, options.heads, options.length, options.head)
    q, k, v = (torch.empty(shape, dtype=torch.float16, device="cuda").normal_(0, 0.5) for _ in range(3))
    result = attention(q, k, v, options)
    head = torch.softmax((q[0, 0].float() @ k[0, 0].float().T) * SCALE, -1) @ v[0, 0].float()
    is_right = torch.allclose(result[0, 0].float(), head, atol=2e-2, rtol=2e-2)
    print(f"attention {options.variant} {'ok' if is_right else 'WRONG'}")
    print(f"max memory: {torch.cuda.max_memory_allocated()}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())

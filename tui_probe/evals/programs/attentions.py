"""Attention in one of several ways, warmed up and then measured: attentions.py NAME. Writes whether it is right.

flash, efficient and math are PyTorch's; triton is a kernel of tui-probe. bigbird_torch and bigbird_triton attend to
some blocks of keys only: a window, the first, and random ones, the same in both. Each makes three calls, and five
more.
"""

from __future__ import annotations

import random
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH, HEADS, LENGTH, WIDTH = 2, 8, 2048, 64
"""Sequences, heads per sequence, tokens, numbers per token and head."""
TILE, CHOSEN = 64, 8
"""Tokens of a block, and blocks of keys that each block of queries attends to, in block-sparse attention."""
WARM_UP, RUNS = 3, 5
"""Calls; the evaluation of traffic leaves out the first ones."""
LOG2_E = 1.4426950408889634
"""Scores are scaled by it, since the kernels compute powers of two."""
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def chosen_blocks(blocks: int) -> list[list[int]]:
    """Return, per block of queries, the distinct blocks of keys: its neighbours, the first, and random others."""
    generator = random.Random(0)
    rows = []
    for query in range(blocks):
        row = list(dict.fromkeys(((query - 1) % blocks, query, (query + 1) % blocks, 0)))
        candidates = [block for block in range(blocks) if block not in row]
        rows.append(row + generator.sample(candidates, CHOSEN - len(row)))
    return rows


def bigbird(q: Any, k: Any, v: Any, table: Any) -> Any:
    """Compute attention by gathering the blocks; q, k, v are (batch, heads, length, width)."""
    q, k, v = (tensor.unflatten(2, (-1, TILE)) for tensor in (q, k, v))
    keys, values = (tensor[:, :, table].flatten(3, 4) for tensor in (k, v))
    scores = torch.matmul(q, keys.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return torch.matmul(scores.softmax(-1), values).flatten(2, 3)


def implementations(q: Any, k: Any, v: Any) -> dict[str, Callable[[], Any]]:
    """Return the attention functions by name."""
    table = torch.tensor(chosen_blocks(LENGTH // TILE), device=q.device)

    def by_pytorch(backend: SDPBackend) -> Any:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v)

    def by_triton() -> Any:
        from kernels_triton import attention_forward

        result, scale = torch.empty_like(q), WIDTH**-0.5 * LOG2_E
        grid = (LENGTH // 128, BATCH * HEADS)
        attention_forward[grid](q, k, v, result, LENGTH, scale, WIDTH=WIDTH, QUERIES=128, KEYS=64, num_warps=8)
        return result

    def bigbird_triton() -> Any:
        from kernels_triton import block_sparse_attention

        result, scale = torch.empty_like(q), WIDTH**-0.5 * LOG2_E
        grid = (LENGTH // TILE, BATCH * HEADS)
        block_sparse_attention[grid](q, k, v, result, block_table, LENGTH, scale, WIDTH=WIDTH, TILE=TILE, CHOSEN=CHOSEN)
        return result

    block_table = table.to(torch.int32)
    return {
        **{name: partial(by_pytorch, backend) for name, backend in BACKENDS.items()},
        "triton": by_triton,
        "bigbird_torch": lambda: bigbird(q, k, v, table),
        "bigbird_triton": bigbird_triton,
    }


def main() -> int:
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    torch.manual_seed(0)
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=torch.float16).cuda() for _ in range(3))
    call = implementations(q, k, v).get(name)
    if call is None:
        print(f"usage: attentions.py NAME; names are {', '.join(implementations(q, k, v))}", file=sys.stderr)
        return 2
    for _ in range(WARM_UP + RUNS):
        result = call()
    torch.cuda.synchronize()
    reference_result = reference(q, k, v, sparse=name.startswith("bigbird"))
    is_right = bool(torch.allclose(result.cpu().float(), reference_result, rtol=2e-2, atol=2e-2))
    print(f"{name}: {'right' if is_right else 'WRONG'}")
    return 0 if is_right else 1


def reference(q: Any, k: Any, v: Any, *, sparse: bool) -> Any:
    """Compute the result on the CPU, so that the measured launches are the only ones."""
    mask = None
    if sparse:
        blocks = torch.zeros(LENGTH // TILE, LENGTH // TILE, dtype=torch.bool)
        for row, key_blocks in enumerate(chosen_blocks(len(blocks))):
            blocks[row, key_blocks] = True
        mask = blocks.repeat_interleave(TILE, 0).repeat_interleave(TILE, 1)
    return scaled_dot_product_attention(*(tensor.cpu().float() for tensor in (q, k, v)), attn_mask=mask)


if __name__ == "__main__":
    sys.exit(main())

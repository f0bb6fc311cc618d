"""Attention to some blocks of keys, as a Triton kernel."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def block_sparse_attention(
    q, k, v, out, blocks, length, scale, WIDTH: tl.constexpr, TILE: tl.constexpr, CHOSEN: tl.constexpr
):
    """``blocks`` has the places of the blocks of keys for each block of queries, so many as are chosen."""
    head = tl.program_id(1) * length * WIDTH
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.arange(0, WIDTH)
    query = tl.load(q + head + rows[:, None] * WIDTH + columns[None, :])
    highest = tl.full((TILE,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((TILE,), dtype=tl.float32)
    result = tl.zeros((TILE, WIDTH), dtype=tl.float32)
    for place in range(CHOSEN):
        keys = tl.load(blocks + tl.program_id(0) * CHOSEN + place) * TILE + tl.arange(0, TILE)
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

"""Triton kernels: attention, dense and block-sparse, matrix product, convolution, and a fill by one block per SM.

Each operation is made by a function that returns how to launch it once, and whether its result is that of PyTorch.
Sizes are such that a record of every access of a launch takes about 50 MB at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from collections.abc import Callable

FILL_BLOCK_SIZE, FILL_WARPS = 128, 8
"""The published configuration of ``fill_persistent``."""
Operation = tuple["Callable[[], Any]", "Callable[[], bool]"]


@triton.jit
def attention_forward(q, k, v, out, length, scale, WIDTH: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """One block per tile of queries and head; softmax kept as a running maximum and sum."""
    head = tl.program_id(1) * length * WIDTH
    rows = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    columns = tl.arange(0, WIDTH)
    query = tl.load(q + head + rows[:, None] * WIDTH + columns[None, :])
    maximum = tl.full((QUERIES,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((QUERIES,), dtype=tl.float32)
    result = tl.zeros((QUERIES, WIDTH), dtype=tl.float32)
    for start in range(0, length, KEYS):
        keys = start + tl.arange(0, KEYS)
        key = tl.load(k + head + keys[None, :] * WIDTH + columns[:, None])
        scores = tl.dot(query, key) * scale
        new_maximum = tl.maximum(maximum, tl.max(scores, 1))
        weights = tl.exp2(scores - new_maximum[:, None])
        shrink = tl.exp2(maximum - new_maximum)
        value = tl.load(v + head + keys[:, None] * WIDTH + columns[None, :])
        result = tl.dot(weights.to(value.dtype), value, result * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        maximum = new_maximum
    tl.store(out + head + rows[:, None] * WIDTH + columns[None, :], (result / total[:, None]).to(tl.float16))


@triton.jit
def matrix_product(
    a, b, c, M, N, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr
):
    """Blocks go through the output in groups of that many rows of tiles, which the L2 cache likes; 1: row by row."""
    block = tl.program_id(0)
    columns = tl.cdiv(N, TILE_N)
    group = block // (GROUP * columns)
    first_row = group * GROUP
    height = min(tl.cdiv(M, TILE_M) - first_row, GROUP)
    row = first_row + (block % (GROUP * columns)) % height
    column = (block % (GROUP * columns)) // height
    rows = (row * TILE_M + tl.arange(0, TILE_M)) % M
    cols = (column * TILE_N + tl.arange(0, TILE_N)) % N
    inner = tl.arange(0, TILE_K)
    a_tile = a + rows[:, None] * K + inner[None, :]
    b_tile = b + inner[:, None] * N + cols[None, :]
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for k in range(0, K, TILE_K):
        x = tl.load(a_tile, mask=inner[None, :] < K - k, other=0.0)
        y = tl.load(b_tile, mask=inner[:, None] < K - k, other=0.0)
        total = tl.dot(x, y, total)
        a_tile += TILE_K
        b_tile += TILE_K * N
    out_rows = row * TILE_M + tl.arange(0, TILE_M)
    out_cols = column * TILE_N + tl.arange(0, TILE_N)
    is_inside = (out_rows[:, None] < M) & (out_cols[None, :] < N)
    tl.store(c + out_rows[:, None] * N + out_cols[None, :], total.to(tl.float16), mask=is_inside)


@triton.jit
def convolve(
    x, w, out, HEIGHT, WIDTH, C: tl.constexpr, K: tl.constexpr, PIXELS: tl.constexpr, FILTERS: tl.constexpr,
    CHANNELS: tl.constexpr,
):  # fmt: skip
    """3 by 3, padded by one, as a product of matrices: x is (images, height, width, C), w is (3, 3, C, K)."""
    pixels = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    filters = tl.program_id(1) * FILTERS + tl.arange(0, FILTERS)
    image = pixels // (HEIGHT * WIDTH)
    row = pixels // WIDTH % HEIGHT
    column = pixels % WIDTH
    channels = tl.arange(0, CHANNELS)
    total = tl.zeros((PIXELS, FILTERS), dtype=tl.float32)
    for tap in range(9):
        y = row + tap // 3 - 1
        z = column + tap % 3 - 1
        is_inside = (y >= 0) & (y < HEIGHT) & (z >= 0) & (z < WIDTH)
        place = ((image * HEIGHT + y) * WIDTH + z) * C
        for first_channel in range(0, C, CHANNELS):
            values = tl.load(
                x + place[:, None] + first_channel + channels[None, :],
                mask=is_inside[:, None] & (channels[None, :] >= 0),
                other=0.0,
            )
            weights = tl.load(w + (tap * C + first_channel + channels[:, None]) * K + filters[None, :])
            total = tl.dot(values, weights, total)
    tl.store(out + pixels[:, None] * K + filters[None, :], total.to(tl.float16))


@triton.jit
def block_sparse_attention(
    q, k, v, out, blocks, length, scale, WIDTH: tl.constexpr, TILE: tl.constexpr, CHOSEN: tl.constexpr
):
    """``blocks`` has the places of the blocks of keys for each block of queries, so many as are chosen."""
    head = tl.program_id(1) * length * WIDTH
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.arange(0, WIDTH)
    query = tl.load(q + head + rows[:, None] * WIDTH + columns[None, :])
    maximum = tl.full((TILE,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((TILE,), dtype=tl.float32)
    result = tl.zeros((TILE, WIDTH), dtype=tl.float32)
    for place in range(CHOSEN):
        keys = tl.load(blocks + tl.program_id(0) * CHOSEN + place) * TILE + tl.arange(0, TILE)
        key = tl.load(k + head + keys[None, :] * WIDTH + columns[:, None])
        scores = tl.dot(query, key) * scale
        new_maximum = tl.maximum(maximum, tl.max(scores, 1))
        weights = tl.exp2(scores - new_maximum[:, None])
        shrink = tl.exp2(maximum - new_maximum)
        value = tl.load(v + head + keys[:, None] * WIDTH + columns[None, :])
        result = tl.dot(weights.to(value.dtype), value, result * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        maximum = new_maximum
    tl.store(out + head + rows[:, None] * WIDTH + columns[None, :], (result / total[:, None]).to(tl.float16))


@triton.jit
def fill_persistent(output, elements, BLOCK_SIZE: tl.constexpr, NUM_SMS: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(elements, BLOCK_SIZE), NUM_SMS):
        offsets = block * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        tl.store(output + offsets, tl.zeros([BLOCK_SIZE], dtype=tl.float16), mask=offsets < elements)


def half(*shape: int) -> Any:
    return torch.randn(*shape, device="cuda", dtype=torch.float16) * 0.5


def close(ours: Any, theirs: Any) -> bool:
    return bool(torch.allclose(ours.float(), theirs.float(), rtol=2e-2, atol=2e-2))


def attention(batch: int = 1, heads: int = 16, length: int = 1024, width: int = 64) -> Operation:
    q, k, v = (half(batch, heads, length, width) for _ in range(3))
    out = torch.empty_like(q)
    scale = width**-0.5 * 1.4426950408889634  # the kernel's exponentials are powers of two

    def launch() -> None:
        grid = (length // 128, batch * heads)
        attention_forward[grid](q, k, v, out, length, scale, WIDTH=width, QUERIES=128, KEYS=64, num_warps=8)

    return launch, lambda: close(out[:1], torch.nn.functional.scaled_dot_product_attention(q[:1], k[:1], v[:1]))


def product(m: int, n: int, k: int, group: int) -> Operation:
    a, b = half(m, k), half(k, n)
    a *= k**-0.5
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    grid = (triton.cdiv(m, 128) * triton.cdiv(n, 128),)

    def launch() -> None:
        matrix_product[grid](
            a, b, c, m, n, k, TILE_M=128, TILE_N=128, TILE_K=64, GROUP=group, num_warps=8, num_stages=3
        )

    return launch, lambda: close(c, a @ b)


def convolution(images: int = 4, height: int = 56, width: int = 56, c: int = 128, k: int = 128) -> Operation:
    x, w = half(images, height, width, c), half(3, 3, c, k) * (9 * c) ** -0.5
    out = torch.empty(images, height, width, k, device="cuda", dtype=torch.float16)
    grid = (images * height * width // 128, k // 128)

    def launch() -> None:
        convolve[grid](x, w, out, height, width, C=c, K=k, PIXELS=128, FILTERS=128, CHANNELS=64, num_warps=8)

    def is_right() -> bool:
        theirs = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1)
        return close(out, theirs.permute(0, 2, 3, 1))

    return launch, is_right


OPERATIONS: dict[str, Callable[[], Operation]] = {
    "attn": attention,
    "gmm": lambda: product(512, 512, 512, 8),
    "gemm": lambda: product(1024, 1024, 1024, 1),
    "conv": convolution,
}

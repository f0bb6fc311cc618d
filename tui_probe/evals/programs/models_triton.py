"""Matrix product, convolution and attention of PyTorch modules as Triton kernels, which a probe can be put into.

``by_triton`` changes the modules of a model in place; the rest stays PyTorch's own. Nothing is tuned: one tile each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable

TILE, INNER, WARPS = 128, 64, 8


@triton.jit
def linear(x, weight, bias, out, M, N, K, BIASED: tl.constexpr, TILE: tl.constexpr, INNER: tl.constexpr):
    """``x @ weight.T + bias``: x is (M, K), weight (N, K), out (M, N)."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, INNER)
    left = x + rows[:, None].to(tl.int64) * K + inner[None, :]
    right = weight + columns[None, :].to(tl.int64) * K + inner[:, None]
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, K, INNER):
        a = tl.load(left + k, mask=(rows[:, None] < M) & (inner[None, :] < K - k), other=0.0)
        b = tl.load(right + k, mask=(columns[None, :] < N) & (inner[:, None] < K - k), other=0.0)
        total = tl.dot(a, b, total)
    if BIASED:
        total += tl.load(bias + columns, mask=columns < N, other=0.0)[None, :].to(tl.float32)
    place = out + rows[:, None].to(tl.int64) * N + columns[None, :]
    tl.store(place, total.to(out.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def convolution(
    x, weight, bias, out, PIXELS, C, H, W, FILTERS, P, Q, R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr,
    PAD: tl.constexpr, BIASED: tl.constexpr, TILE: tl.constexpr, FILTER_TILE: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """x is (images, C, H, W), weight (FILTERS, C, R, S), out (images, FILTERS, P, Q); PIXELS = images * P * Q."""
    pixels = tl.program_id(0) * TILE + tl.arange(0, TILE)
    filters = tl.program_id(1) * FILTER_TILE + tl.arange(0, FILTER_TILE)
    image = (pixels // (P * Q)).to(tl.int64)
    p = pixels // Q % P
    q = pixels % Q
    total = tl.zeros((TILE, FILTER_TILE), dtype=tl.float32)
    for first in range(0, C * R * S, INNER):
        inner = first + tl.arange(0, INNER)
        y = p[:, None] * STRIDE - PAD + (inner // S % R)[None, :]
        z = q[:, None] * STRIDE - PAD + (inner % S)[None, :]
        inside = (y >= 0) & (y < H) & (z >= 0) & (z < W) & (pixels[:, None] < PIXELS) & (inner[None, :] < C * R * S)
        a = tl.load(x + ((image[:, None] * C + (inner // (R * S))[None, :]) * H + y) * W + z, mask=inside, other=0.0)
        used = (filters[None, :] < FILTERS) & (inner[:, None] < C * R * S)
        b = tl.load(weight + filters[None, :] * (C * R * S) + inner[:, None], mask=used, other=0.0)
        total = tl.dot(a, b, total)
    if BIASED:
        total += tl.load(bias + filters, mask=filters < FILTERS, other=0.0)[None, :].to(tl.float32)
    place = out + ((image[:, None] * FILTERS + filters[None, :]) * P + p[:, None]) * Q + q[:, None]
    tl.store(place, total.to(out.dtype.element_ty), mask=(pixels[:, None] < PIXELS) & (filters[None, :] < FILTERS))


@triton.jit
def attention(
    q, k, v, out, QUERIES, KEYS, scale, WIDTH: tl.constexpr, PADDED: tl.constexpr, CAUSAL: tl.constexpr,
    TILE: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """Of (batch * heads, length, WIDTH); softmax kept as a running maximum and sum. ``scale`` is for powers of two."""
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.arange(0, PADDED)
    place = head * QUERIES * WIDTH + rows[:, None] * WIDTH + columns[None, :]
    kept = (rows[:, None] < QUERIES) & (columns[None, :] < WIDTH)
    query = tl.load(q + place, mask=kept, other=0.0)
    highest = tl.full((TILE,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((TILE,), dtype=tl.float32)
    result = tl.zeros((TILE, PADDED), dtype=tl.float32)
    last = min((tl.program_id(0) + 1) * TILE, KEYS) if CAUSAL else KEYS
    for start in range(0, last, INNER):
        keys = start + tl.arange(0, INNER)
        other = head * KEYS * WIDTH + keys[:, None] * WIDTH + columns[None, :]
        there = (keys[:, None] < KEYS) & (columns[None, :] < WIDTH)
        key = tl.load(k + other, mask=there, other=0.0)
        value = tl.load(v + other, mask=there, other=0.0)
        scores = tl.dot(query, tl.trans(key)) * scale
        seen = (keys[None, :] < KEYS) & (keys[None, :] <= rows[:, None]) if CAUSAL else keys[None, :] < KEYS
        scores = tl.where(seen, scores, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - new_highest[:, None])
        shrink = tl.exp2(highest - new_highest)
        result = tl.dot(weights.to(value.dtype), value, result * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        highest = new_highest
    tl.store(out + place, (result / total[:, None]).to(out.dtype.element_ty), mask=kept)


def call_linear(module: nn.Linear, x: Tensor) -> Tensor:
    """In the place of ``module.forward``."""
    x = x.contiguous()
    m, n, k = x.numel() // x.shape[-1], module.out_features, module.in_features
    out = x.new_empty(*x.shape[:-1], n)
    bias = module.weight if module.bias is None else module.bias
    linear[(triton.cdiv(m, TILE), triton.cdiv(n, TILE))](
        x, module.weight, bias, out, m, n, k, BIASED=module.bias is not None, TILE=TILE, INNER=INNER, num_warps=WARPS
    )
    return out


def call_convolution(module: nn.Conv2d, x: Tensor) -> Tensor:
    """In the place of ``module.forward``, for square filters, strides and paddings."""
    x = x.contiguous()
    images, channels, height, width = x.shape
    filters, _, r, s = module.weight.shape
    stride, pad = module.stride[0], int(module.padding[0])
    p, q = (height + 2 * pad - r) // stride + 1, (width + 2 * pad - s) // stride + 1
    out = x.new_empty(images, filters, p, q)
    pixels, tile = images * p * q, 64
    bias = module.weight if module.bias is None else module.bias
    convolution[(triton.cdiv(pixels, TILE), triton.cdiv(filters, tile))](
        x, module.weight, bias, out, pixels, channels, height, width, filters, p, q, R=r, S=s, STRIDE=stride, PAD=pad,
        BIASED=module.bias is not None, TILE=TILE, FILTER_TILE=tile, INNER=32, num_warps=WARPS,
    )  # fmt: skip
    return out


def call_attention(query: Tensor, key: Tensor, value: Tensor, *, is_causal: bool = False) -> Tensor:
    """As ``scaled_dot_product_attention`` of (batch, heads, length, width)."""
    query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    batch, heads, queries, width = query.shape
    out = torch.empty_like(query)
    scale, padded = width**-0.5 * 1.4426950408889634, max(triton.next_power_of_2(width), 16)
    attention[(triton.cdiv(queries, TILE), batch * heads)](
        query, key, value, out, queries, key.shape[2], scale, WIDTH=width, PADDED=padded,
        CAUSAL=is_causal, TILE=TILE, INNER=INNER, num_warps=WARPS,
    )  # fmt: skip
    return out


def by_triton(model: nn.Module) -> nn.Module:
    """The same model, its products and ungrouped convolutions of images by the kernels above."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.forward = _bound(call_linear, module)
        elif isinstance(module, nn.Conv2d):
            module.forward = _bound(call_convolution, module)
    return model


def _bound(call: Callable[[Any, Tensor], Tensor], module: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda x: call(module, x)

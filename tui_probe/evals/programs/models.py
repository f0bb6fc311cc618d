"""Blocks of models with random weights: some forward passes, and the memory that one takes.

Usage: models.py NAME. PyTorch runs them eagerly; products, convolutions and attention are Triton kernels, which can be
probed, instead of cuBLAS and cuDNN. The first pass compiles those; the passes that count lie between
cudaProfilerStart and cudaProfilerStop, so that each of several probes meets each launch. The last line is
``max memory: BYTES``, the peak of PyTorch's allocator in these passes.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812, as everybody calls it
import triton
import triton.language as tl
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable

PASSES = 4
"""Forward passes that count: one for each of the four probes."""
LLAMA_TOKENS = 512
LOG2_E = 1.4426950408889634
"""Scores of attention are scaled by it, since the kernel computes powers of two."""
TILE, INNER, WARPS = 128, 64, 8
"""Rows and columns of a tile of the output, its steps along the inner dimension, and warps per block; not tuned."""


# -- Triton kernels instead of cuBLAS and cuDNN, which a probe can be put into


@triton.jit
def linear(x, weight, bias, out, M, N, K, BIASED: tl.constexpr, TILE: tl.constexpr, INNER: tl.constexpr):
    """``x @ weight.T + bias``: x is (M, K), weight (N, K), out (M, N)."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, INNER)
    x_tile = x + rows[:, None].to(tl.int64) * K + inner[None, :]
    weight_tile = weight + columns[None, :].to(tl.int64) * K + inner[:, None]
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, K, INNER):
        a = tl.load(x_tile + k, mask=(rows[:, None] < M) & (inner[None, :] < K - k), other=0.0)
        b = tl.load(weight_tile + k, mask=(columns[None, :] < N) & (inner[:, None] < K - k), other=0.0)
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
    for first_tap in range(0, C * R * S, INNER):
        inner = first_tap + tl.arange(0, INNER)
        y = p[:, None] * STRIDE - PAD + (inner // S % R)[None, :]
        z = q[:, None] * STRIDE - PAD + (inner % S)[None, :]
        is_inside = (y >= 0) & (y < H) & (z >= 0) & (z < W) & (pixels[:, None] < PIXELS) & (inner[None, :] < C * R * S)
        a = tl.load(x + ((image[:, None] * C + (inner // (R * S))[None, :]) * H + y) * W + z, mask=is_inside, other=0.0)
        is_filter = (filters[None, :] < FILTERS) & (inner[:, None] < C * R * S)
        b = tl.load(weight + filters[None, :] * (C * R * S) + inner[:, None], mask=is_filter, other=0.0)
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
    """Compute attention of (batch * heads, length, WIDTH), with a running maximum and sum. ``scale`` is for powers
    of two.
    """
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.arange(0, PADDED)
    place = head * QUERIES * WIDTH + rows[:, None] * WIDTH + columns[None, :]
    mask = (rows[:, None] < QUERIES) & (columns[None, :] < WIDTH)
    query = tl.load(q + place, mask=mask, other=0.0)
    maximum = tl.full((TILE,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((TILE,), dtype=tl.float32)
    result = tl.zeros((TILE, PADDED), dtype=tl.float32)
    end = min((tl.program_id(0) + 1) * TILE, KEYS) if CAUSAL else KEYS
    for start in range(0, end, INNER):
        keys = start + tl.arange(0, INNER)
        offsets = head * KEYS * WIDTH + keys[:, None] * WIDTH + columns[None, :]
        in_range = (keys[:, None] < KEYS) & (columns[None, :] < WIDTH)
        key = tl.load(k + offsets, mask=in_range, other=0.0)
        value = tl.load(v + offsets, mask=in_range, other=0.0)
        scores = tl.dot(query, tl.trans(key)) * scale
        is_visible = (keys[None, :] < KEYS) & (keys[None, :] <= rows[:, None]) if CAUSAL else keys[None, :] < KEYS
        scores = tl.where(is_visible, scores, float("-inf"))
        new_maximum = tl.maximum(maximum, tl.max(scores, 1))
        weights = tl.exp2(scores - new_maximum[:, None])
        shrink = tl.exp2(maximum - new_maximum)
        result = tl.dot(weights.to(value.dtype), value, result * shrink[:, None])
        total = total * shrink + tl.sum(weights, 1)
        maximum = new_maximum
    tl.store(out + place, (result / total[:, None]).to(out.dtype.element_ty), mask=mask)


def call_linear(module: nn.Linear, x: Tensor) -> Tensor:
    """Instead of ``module.forward``."""
    x = x.contiguous()
    m, n, k = x.numel() // x.shape[-1], module.out_features, module.in_features
    out = x.new_empty(*x.shape[:-1], n)
    bias = module.weight if module.bias is None else module.bias
    linear[(triton.cdiv(m, TILE), triton.cdiv(n, TILE))](
        x, module.weight, bias, out, m, n, k, BIASED=module.bias is not None, TILE=TILE, INNER=INNER, num_warps=WARPS
    )
    return out


def call_convolution(module: nn.Conv2d, x: Tensor) -> Tensor:
    """Instead of ``module.forward``, for square filters, strides and paddings."""
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
    """Compute ``scaled_dot_product_attention`` of (batch, heads, length, width)."""
    query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    batch, heads, queries, width = query.shape
    out = torch.empty_like(query)
    scale, padded_width = width**-0.5 * LOG2_E, max(triton.next_power_of_2(width), 16)
    attention[(triton.cdiv(queries, TILE), batch * heads)](
        query, key, value, out, queries, key.shape[2], scale, WIDTH=width, PADDED=padded_width,
        CAUSAL=is_causal, TILE=TILE, INNER=INNER, num_warps=WARPS,
    )  # fmt: skip
    return out


def by_triton(model: nn.Module) -> nn.Module:
    """Replace the model's products and ungrouped convolutions of images by the kernels above."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.forward = _bind(call_linear, module)
        elif isinstance(module, nn.Conv2d):
            module.forward = _bind(call_convolution, module)
    return model


def _bind(call: Callable[[Any, Tensor], Tensor], module: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda x: call(module, x)


# -- ResNet-50


class Bottleneck(nn.Module):
    """The first block of a stage."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width),
        )  # fmt: skip
        self.short = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.path(x) + self.short(x))


def resnet() -> nn.Module:
    """The stem, the first block of each stage, and the head."""
    stem = (nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    widths = ((64, 64, 1), (256, 128, 2), (512, 256, 2), (1024, 512, 2))
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
    return nn.Sequential(*stem, *(Bottleneck(*width) for width in widths), *head)


# -- Stable Diffusion


class Attention(nn.Module):
    """Attention of an image's places to themselves, or to the tokens of a text."""

    def __init__(self, width: int, context: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(size, width, bias=False) for size in (width, context, context))
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        query, key, value = (
            projected.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for projected in (self.query(x), self.key(context), self.value(context))
        )
        return self.out(call_attention(query, key, value).transpose(1, 2).flatten(2))


class Diffusion(nn.Module):
    """A residual block and a transformer of a U-Net's first level: 320 channels of 64 by 64, a text of 77 tokens."""

    def __init__(self, channels: int = 320, text: int = 768, heads: int = 8) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.GroupNorm(32, channels), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(32, channels), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1),
        )  # fmt: skip
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(3))
        self.itself, self.text = Attention(channels, channels, heads), Attention(channels, text, heads)
        self.up, self.down = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        x = x + self.residual(x)
        places = x.flatten(2).transpose(1, 2)
        normal = self.norms[0](places)
        places = places + self.itself(normal, normal)
        places = places + self.text(self.norms[1](places), text)
        values, gate = self.up(self.norms[2](places)).chunk(2, dim=-1)
        places = places + self.down(values * F.gelu(gate))
        return places.transpose(1, 2).unflatten(2, x.shape[2:])


# -- Mamba


class Mamba(nn.Module):
    """A selective state space block of mamba-130m."""

    def __init__(self, width: int = 768, states: int = 16, rank: int = 48) -> None:
        super().__init__()
        inner = 2 * width
        self.rank, self.states = rank, states
        self.norm = nn.LayerNorm(width)
        self.inside, self.out = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)
        self.mix = nn.Conv1d(inner, inner, 4, padding=3, groups=inner)
        self.select, self.step = nn.Linear(inner, rank + 2 * states, bias=False), nn.Linear(rank, inner)
        self.decay = nn.Parameter(torch.rand(inner, states))
        self.skip = nn.Parameter(torch.ones(inner))

    def forward(self, x: Tensor) -> Tensor:
        values, gate = self.inside(self.norm(x)).chunk(2, dim=-1)
        values = F.silu(self.mix(values.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, input_weights, output_weights = self.select(values).split((self.rank, self.states, self.states), dim=-1)
        step = F.softplus(self.step(step))
        decay = torch.exp(-step.unsqueeze(-1) * self.decay.exp())
        state = scan(decay, (step * values).unsqueeze(-1) * input_weights.unsqueeze(2))
        output = (state * output_weights.unsqueeze(2)).sum(-1) + self.skip * values
        return x + self.out(output * F.silu(gate))


def scan(decay: Tensor, inputs: Tensor) -> Tensor:
    """``state[t] = decay[t] * state[t - 1] + added[t]`` along dimension 1, by doubling."""
    reach = 1
    while reach < inputs.shape[1]:
        pad = (0, 0, 0, 0, reach, 0)
        inputs = inputs + decay * F.pad(inputs[:, :-reach], pad)
        decay = decay * F.pad(decay[:, :-reach], pad, value=1.0)
        reach *= 2
    return inputs


# -- Llama 3


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder layer."""

    width: int
    heads: int
    key_heads: int
    inner: int


LLAMA = {
    "llama1b": Shape(2048, 32, 8, 8192),
    "llama3b": Shape(3072, 24, 8, 8192),
    "llama8b": Shape(4096, 32, 8, 14336),
}


class Decoder(nn.Module):
    """A decoder layer: grouped attention with rotated queries and keys, and a gated network."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape, self.head = shape, shape.width // shape.heads
        keys = shape.key_heads * self.head
        self.norms = nn.ModuleList(nn.RMSNorm(shape.width) for _ in range(2))
        self.query, self.key, self.value = (nn.Linear(shape.width, n, bias=False) for n in (shape.width, keys, keys))
        self.out = nn.Linear(shape.width, shape.width, bias=False)
        self.gate, self.up = (nn.Linear(shape.width, shape.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        normal = self.norms[0](x)
        query, key, value = (
            part(normal).unflatten(-1, (-1, self.head)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        groups = self.shape.heads // self.shape.key_heads
        key, value = (part.repeat_interleave(groups, dim=1) for part in (rotated(key), value))
        attended = call_attention(rotated(query), key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        normal = self.norms[1](x)
        return x + self.down(F.silu(self.gate(normal)) * self.up(normal))


def rotated(x: Tensor) -> Tensor:
    """Rotary places along dimension 2."""
    half = x.shape[-1] // 2
    frequency = 500000.0 ** (-torch.arange(half, device=x.device) / half)
    angle = torch.arange(x.shape[2], device=x.device).unsqueeze(1) * frequency
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    low_half, high_half = x.chunk(2, dim=-1)
    return torch.cat((low_half * cos - high_half * sin, high_half * cos + low_half * sin), dim=-1)


# -- one pass


def model_and_inputs(name: str, batch: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The module and random inputs for it. KeyError for a name that there is not."""
    if name == "resnet":
        return resnet().eval(), (torch.randn(batch, 3, 224, 224),)
    if name == "sd":
        return Diffusion(), (torch.randn(batch, 320, 64, 64), torch.randn(batch, 77, 768))
    if name == "mamba":
        return Mamba(), (torch.randn(batch, 256, 768),)
    shape = LLAMA[name]
    return Decoder(shape), (torch.randn(batch, LLAMA_TOKENS, shape.width),)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="MODEL-bsBATCH, as resnet-bs32, sd-bs1, mamba-bs32, llama8b-bs128")
    name, separator, batch = parser.parse_args().name.partition("-bs")
    if not separator or not batch.isdigit() or name not in ("resnet", "sd", "mamba", *LLAMA):
        parser.error("write MODEL-bsBATCH; models are resnet, sd, mamba, " + ", ".join(LLAMA))
    if not torch.cuda.is_available():
        print("models.py: PyTorch sees no GPU", file=sys.stderr)
        return 1
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.no_grad(), torch.device("cuda"):
        model, inputs = model_and_inputs(name, int(batch))
        by_triton(model)(*inputs)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.profiler.start()
        for _ in range(PASSES):
            result = model(*inputs)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
    print(f"finite: {bool(torch.isfinite(result).all())}")
    print(f"max memory: {torch.cuda.max_memory_allocated()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

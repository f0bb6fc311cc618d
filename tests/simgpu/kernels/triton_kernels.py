"""Kernels in Triton. Run with Triton installed to compile them, for sm_80 and without a GPU, to the PTX next to
them.
"""

from __future__ import annotations

import re
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def triton_softmax(output, values, stride, columns, block: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, block)
    inside = column < columns
    x = tl.load(values + row * stride + column, mask=inside, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(output + row * stride + column, e / tl.sum(e, 0), mask=inside)


@triton.jit
def triton_matmul(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    rm = tl.program_id(0) * bm + tl.arange(0, bm)
    rn = tl.program_id(1) * bn + tl.arange(0, bn)
    rk = tl.arange(0, bk)
    total = tl.zeros((bm, bn), tl.float32)
    for start in range(0, k, bk):
        d = start + rk
        x = tl.load(a + rm[:, None] * k + d[None, :], mask=(rm[:, None] < m) & (d[None, :] < k), other=0.0)
        y = tl.load(b + d[:, None] * n + rn[None, :], mask=(d[:, None] < k) & (rn[None, :] < n), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(c + rm[:, None] * n + rn[None, :], total.to(tl.float16), mask=(rm[:, None] < m) & (rn[None, :] < n))


@triton.jit
def triton_attention(q, k, v, o, scale, length, bm: tl.constexpr, bn: tl.constexpr, size: tl.constexpr):
    rm, rd, rn = tl.program_id(0) * bm + tl.arange(0, bm), tl.arange(0, size), tl.arange(0, bn)
    queries = tl.load(q + rm[:, None] * size + rd[None, :])
    highest = tl.full((bm,), -float("inf"), tl.float32)
    weight = tl.zeros((bm,), tl.float32)
    total = tl.zeros((bm, size), tl.float32)
    for start in range(0, length, bn):
        keys = tl.load(k + (start + rn)[None, :] * size + rd[:, None])
        scores = tl.dot(queries, keys) * scale
        now = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp2(scores - now[:, None])
        shrink = tl.exp2(highest - now)
        weight = weight * shrink + tl.sum(p, 1)
        values = tl.load(v + (start + rn)[:, None] * size + rd[None, :])
        total = tl.dot(p.to(tl.float16), values, total * shrink[:, None])
        highest = now
    tl.store(o + rm[:, None] * size + rd[None, :], (total / weight[:, None]).to(tl.float16))


@triton.jit
def triton_scan(values, bins, largest, count, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    inside = i < count
    x = tl.load(values + i, mask=inside, other=0)
    tl.atomic_add(bins + x % 16, 1, mask=inside)
    tl.atomic_max(largest, tl.max(x, 0))
    tl.store(values + i, tl.cumsum(x, 0), mask=inside)


def compile_kernel(function, signature: dict[str, str], constants: dict[str, int], **options: int) -> None:
    """Writes the PTX of ``function`` without debug information, which would name files of this machine."""
    places = {(function.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(function, {**signature, **dict.fromkeys(constants, "constexpr")}, places)
    text = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options).asm["ptx"]
    text = re.sub(r"\n\t?\.section\b.*", "\n", text, flags=re.DOTALL)
    text = re.sub(r"\n[ \t]*(?:\.loc\b|\.file\b|//)[^\n]*", "", text)
    text = re.sub(r"(\.target [^,\n]*), debug", r"\1", re.sub(r"[ \t]*//[^\n]*", "", text))
    Path(__file__).with_name(f"{function.__name__}.ptx").write_text(text.strip() + "\n")


if __name__ == "__main__":
    half, single, integer = "*fp16", "*fp32", "*i32"
    compile_kernel(
        triton_softmax, {"output": single, "values": single, "stride": "i32", "columns": "i32"}, {"block": 1024}
    )
    compile_kernel(
        triton_matmul,
        {"a": half, "b": half, "c": half, "m": "i32", "n": "i32", "k": "i32"},
        {"bm": 64, "bn": 64, "bk": 32},
        num_stages=3,
    )
    compile_kernel(
        triton_attention,
        {"q": half, "k": half, "v": half, "o": half, "scale": "fp32", "length": "i32"},
        {"bm": 64, "bn": 32, "size": 64},
        num_stages=2,
    )
    compile_kernel(
        triton_scan, {"values": integer, "bins": integer, "largest": integer, "count": "i32"}, {"block": 256}
    )

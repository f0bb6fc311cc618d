"""``python triton_kernels.py FOLDER``: kernels in Triton to PTX for sm_90, without a GPU."""

import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.jit
def softmax(x, out, columns, block: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, block)
    values = tl.load(x + row * columns + i, i < columns, float("-inf")).to(tl.float32)
    exponents = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + i, exponents / tl.sum(exponents, 0), i < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, block: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, block)
    values = tl.load(x + row * columns + i, i < columns, 0).to(tl.float32)
    mean = tl.sum(values, 0) / columns
    centred = tl.where(i < columns, values - mean, 0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
    w, b = tl.load(weight + i, i < columns), tl.load(bias + i, i < columns)
    tl.store(out + row * columns + i, centred * scale * w + b, i < columns)


@triton.jit
def matmul(a, b, c, depth, lda, ldb, ldc, tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr):
    m = tl.program_id(0) * tile_m + tl.arange(0, tile_m)
    n = tl.program_id(1) * tile_n + tl.arange(0, tile_n)
    k = tl.arange(0, tile_k)
    total = tl.zeros((tile_m, tile_n), tl.float32)
    for start in range(0, depth, tile_k):
        left = tl.load(a + m[:, None] * lda + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * ldb + n[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * ldc + n[None, :], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, length, stride, scale, rows: tl.constexpr, width: tl.constexpr, columns: tl.constexpr):
    m, d = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, width)
    head = tl.program_id(1) * length * stride
    query = tl.load(q + head + m[:, None] * stride + d[None, :])
    top = tl.full((rows,), float("-inf"), tl.float32)
    under = tl.zeros((rows,), tl.float32)
    total = tl.zeros((rows, width), tl.float32)
    for start in range(0, length, columns):
        n = start + tl.arange(0, columns)
        key = tl.load(k + head + n[None, :] * stride + d[:, None])
        value = tl.load(v + head + n[:, None] * stride + d[None, :])
        score = tl.dot(query, key) * scale
        highest = tl.maximum(top, tl.max(score, 1))
        weights, before = tl.exp(score - highest[:, None]), tl.exp(top - highest)
        under, top = under * before + tl.sum(weights, 1), highest
        total = tl.dot(weights.to(tl.float16), value, total * before[:, None])
    tl.store(out + head + m[:, None] * stride + d[None, :], (total / under[:, None]).to(tl.float16))


@triton.jit
def cross_entropy(logits, labels, losses, columns, block: tl.constexpr):
    row = tl.program_id(0)
    highest = tl.full((), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, columns, block):
        i = start + tl.arange(0, block)
        values = tl.load(logits + row * columns + i, i < columns, float("-inf")).to(tl.float32)
        top = tl.maximum(highest, tl.max(values, 0))
        total, highest = total * tl.exp(highest - top) + tl.sum(tl.exp(values - top), 0), top
    chosen = tl.load(logits + row * columns + tl.load(labels + row)).to(tl.float32)
    tl.store(losses + row, tl.log(total) + highest - chosen)


@triton.jit
def histogram(x, counts, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.atomic_add(counts + tl.load(x + i, i < n, 0) % 64, 1, i < n)


@triton.jit
def scan(x, out, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + i, tl.cumsum(tl.load(x + i, i < n, 0), 0), i < n)


@triton.jit
def sort(x, out, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def dropout(x, out, n, seed, p, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    mask = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(mask, tl.load(x + i, i < n) / (1 - p), 0.0), i < n)


@triton.jit
def gelu(x, out, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + i, i < n).to(tl.float32)
    tl.store(out + i, 0.5 * value * (1 + tl.erf(value * 0.70710678)), i < n)


def tiles(m, n, k):
    return {"tile_m": m, "tile_n": n, "tile_k": k}


MATMUL = "*fp16 *fp16 *fp16 i32 i32 i32 i32"
CASES = [
    *((add, f"*{t} *{t} *{t} i32", {"block": size}, 4) for t in ("fp32", "fp16", "i64") for size in (256, 1024)),
    *((softmax, f"*{t} *{t} i32", {"block": size}, 4) for t in ("fp32", "fp16") for size in (512, 4096)),
    *(
        (layer_norm, f"*{t} *fp32 *fp32 *{t} i32", {"block": size}, 8)
        for t in ("fp32", "bf16")
        for size in (1024, 8192)
    ),
    *((matmul, MATMUL, tiles(*tile), warps) for *tile, warps in ((32, 32, 32, 4), (64, 64, 32, 4), (128, 128, 64, 8))),
    (matmul, MATMUL.replace("fp16 *fp16 *fp16", "bf16 *bf16 *fp16"), tiles(128, 64, 32), 4),
    (matmul, MATMUL.replace("fp16 *fp16", "fp32 *fp32"), tiles(64, 64, 32), 4),
    *(
        (attention, "*fp16 *fp16 *fp16 *fp16 i32 i32 fp32", {"rows": rows, "width": width, "columns": 64}, warps)
        for rows, width, warps in ((64, 64, 4), (128, 64, 4), (128, 128, 8))
    ),
    *((cross_entropy, f"*{t} *i64 *fp32 i32", {"block": 2048}, 4) for t in ("fp32", "bf16")),
    (histogram, "*i32 *i32 i32", {"block": 1024}, 4),
    *((scan, f"*{t} *{t} i32", {"block": 1024}, 4) for t in ("fp32", "i32", "fp64")),
    *((sort, f"*{t} *{t}", {"block": 256}, 4) for t in ("fp32", "i32")),
    (dropout, "*fp32 *fp32 i32 i32 fp32", {"block": 1024}, 4),
    *((gelu, f"*{t} *{t} i32", {"block": 1024}, 4) for t in ("fp32", "fp16")),
]

for number, (kernel, types, constants, warps) in enumerate(CASES):
    names = [name for name in kernel.arg_names if name not in constants]
    signature = dict(zip(names, types.split(), strict=True)) | dict.fromkeys(constants, "constexpr")
    pointers = [index for index, name in enumerate(names) if signature[name] != "fp32"]
    aligned = {(index,): [["tt.divisibility", 16]] for index in pointers}  # as for most tensors
    source = triton.compiler.ASTSource(kernel, signature, constants, aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    (Path(sys.argv[1]) / f"triton_{number:02}_{kernel.__name__}.ptx").write_text(compiled.asm["ptx"])

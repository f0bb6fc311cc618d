"""Triton kernels of the corpus. `python triton_kernels.py` compiles them to PTX, without a GPU."""

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
    values = tl.load(x + row * columns + i, i < columns, float("-inf"))
    exponents = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + i, exponents / tl.sum(exponents, 0), i < columns)


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
def checked(x, out, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + i, i < n, 0)
    tl.device_assert(value >= 0, "negative")
    tl.device_print("value", value)
    tl.atomic_add(out + value % 8, 1, i < n)


CASES = [
    (add, "*fp32 *fp32 *fp32 i32", {"block": 256}),
    (softmax, "*fp32 *fp32 i32", {"block": 512}),
    (matmul, "*fp16 *fp16 *fp16 i32 i32 i32 i32", {"tile_m": 32, "tile_n": 32, "tile_k": 32}),
    (checked, "*i32 *i32 i32", {"block": 128}),
]

for kernel, types, constants in CASES:
    names = [name for name in kernel.arg_names if name not in constants]
    signature = dict(zip(names, types.split(), strict=True)) | dict.fromkeys(constants, "constexpr")
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(len(names))}  # as for most tensors
    for arch in (80, 90):
        source = triton.compiler.ASTSource(kernel, signature, constants, aligned)
        compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32))
        suffix = "a" if arch == 90 else ""
        name = f"triton_{kernel.__name__}.sm_{arch}{suffix}"
        Path(f"{name}.ptx").write_text(compiled.asm["ptx"])
        Path(f"{name}.cubin").write_bytes(compiled.asm["cubin"])

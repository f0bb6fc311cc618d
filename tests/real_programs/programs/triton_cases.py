"""The kernels of Triton's tutorials 01 to 08, without PyTorch: arrays are memory of the CUDA driver."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import triton
import triton.language as tl
from cases import case, run_all
from triton.language.extra import libdevice

RNG = np.random.default_rng(0)
DRIVER = ctypes.CDLL("libcuda.so")


class Array:
    """An array in device memory: what Triton asks of a tensor, and NumPy to and fro."""

    def __init__(self, values):
        self.shape, self._kind, self.dtype = values.shape, values.dtype, values.dtype.name
        self.nbytes = values.nbytes
        address = ctypes.c_uint64()
        triton.runtime.driver.active.get_current_device()  # makes a context
        values = np.ascontiguousarray(values)
        assert DRIVER.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(self.nbytes)) == 0
        self._address = address.value
        source = ctypes.c_void_p(values.ctypes.data)
        assert DRIVER.cuMemcpyHtoD_v2(address, source, ctypes.c_size_t(self.nbytes)) == 0

    def data_ptr(self):
        return self._address

    def numpy(self):
        values = np.empty(self.shape, self._kind)
        target, source = ctypes.c_void_p(values.ctypes.data), ctypes.c_uint64(self._address)
        assert DRIVER.cuMemcpyDtoH_v2(target, source, ctypes.c_size_t(self.nbytes)) == 0
        return values


def context():
    """A context, before any kernel is compiled."""
    made = ctypes.c_void_p()
    assert DRIVER.cuInit(0) == 0
    assert DRIVER.cuDevicePrimaryCtxRetain(ctypes.byref(made), 0) == 0
    assert DRIVER.cuCtxSetCurrent(made) == 0


def normal(*shape, kind=np.float32):
    return RNG.standard_normal(shape).astype(kind)


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    tl.store(output_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@case
def vector_add():
    x, y = normal(9843), normal(9843)
    output = Array(np.zeros_like(x))
    add_kernel[(triton.cdiv(x.size, 1024),)](Array(x), Array(y), output, x.size, BLOCK_SIZE=1024)
    np.testing.assert_array_equal(output.numpy(), x + y)


@triton.jit
def softmax_kernel(output_ptr, input_ptr, stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr, num_stages: tl.constexpr):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=num_stages):
        columns = tl.arange(0, BLOCK_SIZE)
        mask = columns < n_cols
        values = tl.load(input_ptr + row * stride + columns, mask=mask, other=-float("inf"))
        numerator = tl.exp(values - tl.max(values, axis=0))
        tl.store(output_ptr + row * stride + columns, numerator / tl.sum(numerator, axis=0), mask=mask)


@case
def fused_softmax():
    x = normal(37, 781)
    output = Array(np.zeros_like(x))
    softmax_kernel[(8,)](output, Array(x), x.shape[1], *x.shape, BLOCK_SIZE=1024, num_stages=2)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(output.numpy(), exact / exact.sum(1, keepdims=True), rtol=2e-6, atol=1e-9)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_SIZE_M), tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    first_pid_m = (pid // num_pid_in_group) * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, accumulator.to(tl.float16), mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


def check_matmul(activation):
    a, b = normal(130, 100, kind=np.float16), normal(100, 70, kind=np.float16)
    output = Array(np.zeros((130, 70), np.float16))
    grid = (triton.cdiv(130, 64) * triton.cdiv(70, 32),)
    matmul_kernel[grid](
        Array(a), Array(b), output, 130, 70, 100, 100, 1, 70, 1, 70, 1,
        BLOCK_SIZE_M=64, BLOCK_SIZE_N=32, BLOCK_SIZE_K=32, GROUP_SIZE_M=2, ACTIVATION=activation, num_stages=3,
    )  # fmt: skip
    exact = a.astype(np.float64) @ b.astype(np.float64)
    exact = np.where(exact >= 0, exact, 0.01 * exact) if activation else exact
    np.testing.assert_allclose(output.numpy(), exact, rtol=2e-3, atol=2e-2)


@case
def matrix_multiplication():
    check_matmul("")


@case
def matrix_multiplication_with_activation():
    check_matmul("leaky_relu")


@triton.jit
def seeded_dropout(x_ptr, output_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(output_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def philox(seed, counters):
    """Philox4x32-10, its first word."""
    c = [counters.astype(np.uint64), *(np.zeros(counters.size, np.uint64) for _ in range(3))]
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        x, y = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        k0, k1 = np.uint64(key[0]), np.uint64(key[1])
        c = [(y >> high) ^ c[1] ^ k0, y & low, (x >> high) ^ c[3] ^ k1, x & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype(np.uint32).view(np.int32)


@case
def low_memory_dropout():
    x = normal(1000)
    output = Array(np.zeros_like(x))
    seeded_dropout[(1,)](Array(x), output, x.size, 0.5, 123, BLOCK_SIZE=1024)
    drawn = philox(123, np.arange(1000))
    drawn = np.where(drawn < 0, -drawn - 1, drawn) * np.float32(4.6566127342e-10)
    np.testing.assert_allclose(output.numpy(), np.where(drawn > 0.5, x * 2, 0), rtol=1e-6)


@triton.jit
def layer_norm_forward(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    mean = 0.0
    total = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        total += tl.load(X + row * stride + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    total = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + row * stride + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        total += x * x
    rstd = 1 / tl.sqrt(tl.sum(total, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        x = tl.load(X + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * tl.load(W + cols, mask=mask) + tl.load(B + cols, mask=mask)
        tl.store(Y + row * stride + cols, y, mask=mask)


@triton.jit
def layer_norm_backward(DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """With locks, as in the tutorial: blocks of a group add to the same row one after another."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    lock_id = row % GROUP
    count = Lock + GROUP + lock_id
    DW = DW + lock_id * N + cols
    DB = DB + lock_id * N + cols
    x = tl.load(X + row * stride + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + row * stride + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    rstd = tl.load(Rstd + row)
    xhat = tl.where(mask, (x - tl.load(Mean + row)) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    dx = (wdy - (xhat * tl.sum(xhat * wdy, axis=0) / N + tl.sum(wdy, axis=0) / N)) * rstd
    tl.store(DX + row * stride + cols, dx, mask=mask)
    partial_dw, partial_db = dy * xhat, dy
    while tl.atomic_cas(Lock + lock_id, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        partial_dw += tl.load(DW, mask=mask)
        partial_db += tl.load(DB, mask=mask)
    tl.store(DW, partial_dw, mask=mask)
    tl.store(DB, partial_db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock + lock_id, 0)


@case
def layer_norm_and_its_gradient():
    x, w, b, dy = normal(20, 200), normal(200), normal(200), normal(20, 200)
    mean, rstd, y = (Array(np.zeros(shape, np.float32)) for shape in ((20,), (20,), (20, 200)))
    layer_norm_forward[(20,)](Array(x), y, Array(w), Array(b), mean, rstd, 200, 200, 1e-5, BLOCK_SIZE=128)
    exact = x.astype(np.float64)
    mu, sigma = exact.mean(1, keepdims=True), 1 / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    xhat = (exact - mu) * sigma
    np.testing.assert_allclose(y.numpy(), xhat * w + b, rtol=1e-4, atol=1e-5)
    dx, dw, db, lock = (Array(np.zeros(shape, kind)) for shape, kind in (
        ((20, 200), np.float32), ((4, 200), np.float32), ((4, 200), np.float32), ((8,), np.int32)))  # fmt: skip
    layer_norm_backward[(20,)](
        dx, Array(dy), dw, db, Array(x), Array(w), mean, rstd, lock, 200, 200, GROUP=4, BLOCK=256
    )
    wdy = w * dy
    expected = (wdy - xhat * (xhat * wdy).mean(1, keepdims=True) - wdy.mean(1, keepdims=True)) * sigma
    np.testing.assert_allclose(dx.numpy(), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(dw.numpy().sum(0), (dy * xhat).sum(0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(db.numpy().sum(0), dy.sum(0), rtol=1e-3, atol=1e-4)


@triton.jit
def attention_forward(Q, K, V, Out, sm_scale, N_CTX, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                      CAUSAL: tl.constexpr):  # fmt: skip
    start_m, head = tl.program_id(0), tl.program_id(1)
    base = head * N_CTX * HEAD
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD], dtype=tl.float32)
    q = tl.load(Q + base + offs_m[:, None] * HEAD + offs_d[None, :])
    end = (start_m + 1) * BLOCK_M if CAUSAL else N_CTX
    for start_n in range(0, end, BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        k = tl.load(K + base + offs_n[None, :] * HEAD + offs_d[:, None])
        qk = tl.dot(q, k) * sm_scale * 1.44269504
        if CAUSAL:
            qk = qk + tl.where(offs_m[:, None] >= offs_n[None, :], 0, -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(V + base + offs_n[:, None] * HEAD + offs_d[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * alpha[:, None])
        m_i = m_ij
    # The first sum began with 1, which the first factor exp2(-inf) took away.
    tl.store(Out + base + offs_m[:, None] * HEAD + offs_d[None, :], (acc / l_i[:, None]).to(tl.float16))


def check_attention(causal):
    q, k, v = (normal(2, 128, 32, kind=np.float16) for _ in range(3))
    output = Array(np.zeros_like(q))
    scale = 1 / math.sqrt(32)
    attention_forward[(2, 2)](
        Array(q), Array(k), Array(v), output, scale, 128, HEAD=32, BLOCK_M=64, BLOCK_N=32, CAUSAL=causal
    )
    scores = np.einsum("hmd,hnd->hmn", q.astype(np.float64), k.astype(np.float64)) * scale
    scores = np.where(np.tri(128, dtype=bool), scores, -np.inf) if causal else scores
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    exact = (weights / weights.sum(-1, keepdims=True)) @ v.astype(np.float64)
    np.testing.assert_allclose(output.numpy(), exact, rtol=5e-3, atol=5e-3)


@case
def fused_attention():
    check_attention(False)


@case
def fused_causal_attention():
    check_attention(True)


@triton.jit
def asin_kernel(x_ptr, y_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    tl.store(y_ptr + offsets, libdevice.asin(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


@case
def functions_of_libdevice():
    x = RNG.uniform(-1, 1, 5000)
    for kind, tolerance in ((np.float32, 1e-6), (np.float64, 1e-14)):
        output = Array(np.zeros(5000, kind))
        asin_kernel[(5,)](Array(x.astype(kind)), output, 5000, BLOCK_SIZE=1024)
        np.testing.assert_allclose(output.numpy(), np.arcsin(x.astype(kind).astype(np.float64)), rtol=tolerance)


@triton.jit
def grouped_kernel(a_ptrs, b_ptrs, c_ptrs, sizes, groups, NUM_SM: tl.constexpr, TILE: tl.constexpr):
    """Each block takes tiles of several products in turn; pointers to matrices are data."""
    tile = tl.program_id(0)
    last = 0
    for g in range(groups):
        m, n, k = tl.load(sizes + g * 3), tl.load(sizes + g * 3 + 1), tl.load(sizes + g * 3 + 2)
        across = tl.cdiv(n, TILE)
        tiles = tl.cdiv(m, TILE) * across
        a = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
        b = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
        c = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
        while tile >= last and tile < last + tiles:
            rows = ((tile - last) // across) * TILE + tl.arange(0, TILE)
            cols = ((tile - last) % across) * TILE + tl.arange(0, TILE)
            inner = tl.arange(0, TILE)
            total = tl.zeros((TILE, TILE), dtype=tl.float32)
            for start in range(0, k, TILE):
                left = tl.load(a + rows[:, None] * k + start + inner[None, :])
                right = tl.load(b + (start + inner)[:, None] * n + cols[None, :])
                total += tl.dot(left, right)
            tl.store(c + rows[:, None] * n + cols[None, :], total.to(tl.float16))
            tile += NUM_SM
        last = last + tiles


@case
def grouped_matrix_products():
    shapes = [(64, 32, 64), (32, 96, 32), (96, 64, 128)]
    pairs = [(normal(m, k, kind=np.float16), normal(k, n, kind=np.float16)) for m, n, k in shapes]
    left, right = [Array(a) for a, _ in pairs], [Array(b) for _, b in pairs]
    made = [Array(np.zeros((m, n), np.float16)) for m, n, _ in shapes]
    tables = [Array(np.array([array.data_ptr() for array in arrays], np.int64)) for arrays in (left, right, made)]
    sizes = Array(np.array(shapes, np.int32))
    grouped_kernel[(4,)](*tables, sizes, len(shapes), NUM_SM=4, TILE=32)
    for (a, b), output in zip(pairs, made):
        np.testing.assert_allclose(output.numpy(), a.astype(np.float64) @ b, rtol=2e-3, atol=2e-2)


@triton.jit
def sort_and_scan(x_ptr, sorted_ptr, sums_ptr, counts_ptr, N: tl.constexpr, BINS: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    tl.store(sorted_ptr + offsets, tl.sort(x))
    tl.store(sums_ptr + offsets, tl.cumsum(x, 0))
    tl.store(counts_ptr + tl.arange(0, BINS), tl.histogram(x % BINS, BINS))


@case
def sort_scan_and_histogram():
    x = RNG.integers(0, 1000, 512).astype(np.int32)
    ordered, sums, counts = (Array(np.zeros(size, np.int32)) for size in (512, 512, 16))
    sort_and_scan[(1,)](Array(x), ordered, sums, counts, N=512, BINS=16)
    np.testing.assert_array_equal(ordered.numpy(), np.sort(x))
    np.testing.assert_array_equal(sums.numpy(), np.cumsum(x))
    np.testing.assert_array_equal(counts.numpy(), np.bincount(x % 16, minlength=16))


@triton.jit
def doubled_tiles(x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    place = [tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N]
    target.store(place, source.load(place) * 2)


@case
def tensor_descriptors():
    triton.set_allocator(lambda size, *_: Array(np.zeros(max(size, 1), np.uint8)))
    x = normal(100, 96)
    y = Array(np.zeros_like(x))
    doubled_tiles[(4, 3)](Array(x), y, 100, 96, BLOCK_M=32, BLOCK_N=32)
    np.testing.assert_array_equal(y.numpy(), x * 2)


@triton.jit
def product_of(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr, KIND: tl.constexpr, PRECISION: tl.constexpr):
    row, column = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    a, b = tl.load(a_ptr + row * SIZE + column), tl.load(b_ptr + row * SIZE + column)
    if KIND == "bf16":
        a, b = a.to(tl.bfloat16, bitcast=True), b.to(tl.bfloat16, bitcast=True)
    if KIND == "e5m2":
        a, b = a.to(tl.float8e5, bitcast=True), b.to(tl.float8e5, bitcast=True)
    if KIND == "int8":
        tl.store(c_ptr + row * SIZE + column, tl.dot(a, b, out_dtype=tl.int32))
    else:
        tl.store(c_ptr + row * SIZE + column, tl.dot(a, b, input_precision=PRECISION))


def check_product(kind, a, b, exact, tolerance, precision="ieee"):
    output = Array(np.zeros(a.shape, np.int32 if kind == "int8" else np.float32))
    product_of[(1,)](Array(a), Array(b), output, SIZE=64, KIND=kind, PRECISION=precision)
    np.testing.assert_allclose(output.numpy(), exact, rtol=tolerance, atol=tolerance * np.abs(exact).max())


@case
def products_of_other_types():
    a, b = normal(64, 64), normal(64, 64)
    check_product("f32", a, b, a.astype(np.float64) @ b, 2e-3, "tf32")
    brains = [(values.view(np.uint32) >> 16).astype(np.uint16) for values in (a, b)]
    wide = [(bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for bits in brains]
    check_product("bf16", *brains, wide[0] @ wide[1], 1e-5)
    halves = [values.astype(np.float16).view(np.uint16) & 0xFF00 for values in (a, b)]
    wide = [bits.view(np.float16).astype(np.float64) for bits in halves]
    check_product("e5m2", *((bits >> 8).astype(np.uint8) for bits in halves), wide[0] @ wide[1], 1e-5)
    c, d = (RNG.integers(-128, 128, (64, 64)).astype(np.int8) for _ in range(2))
    check_product("int8", c, d, c.astype(np.int64) @ d.astype(np.int64), 0)


context()
run_all()

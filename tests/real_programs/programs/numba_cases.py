"""Programs of numba-cuda, each against NumPy."""

from __future__ import annotations

import math
import warnings

import numba
import numpy as np
from cases import case, run_all
from numba import cuda, float32, int32
from numba.core.errors import NumbaPerformanceWarning
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

warnings.simplefilter("ignore", NumbaPerformanceWarning)
RNG = np.random.default_rng(0)


@cuda.jit
def add_kernel(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@case
def vector_add():
    a, b = RNG.random(1000, np.float32), RNG.random(1000, np.float32)
    out = np.zeros_like(a)
    add_kernel[8, 128](a, b, out)
    np.testing.assert_array_equal(out, a + b)


@cuda.jit
def tiled_product(a, b, out):
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for tile in range((a.shape[1] + 15) // 16):
        left[ty, tx] = a[y, tx + tile * 16] if y < a.shape[0] and tx + tile * 16 < a.shape[1] else 0
        right[ty, tx] = b[ty + tile * 16, x] if x < b.shape[1] and ty + tile * 16 < b.shape[0] else 0
        cuda.syncthreads()
        for j in range(16):
            total += left[ty, j] * right[j, tx]
        cuda.syncthreads()
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = total


@case
def product_in_tiles_of_shared_memory():
    a, b = RNG.random((40, 50), np.float32), RNG.random((50, 35), np.float32)
    out = np.zeros((40, 35), np.float32)
    tiled_product[(3, 3), (16, 16)](a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)


@cuda.reduce
def total_of(a, b):
    return a + b


@case
def reduction():
    values = np.arange(5000, dtype=np.float64)
    assert total_of(values) == values.sum()


@cuda.jit
def histogram_kernel(values, bins, largest):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], 1)
        cuda.atomic.max(largest, 0, values[i])


@case
def atomics():
    values = RNG.integers(0, 10, 3000).astype(np.int32)
    bins, largest = np.zeros(10, np.int32), np.zeros(1, np.int32)
    histogram_kernel[12, 256](values, bins, largest)
    np.testing.assert_array_equal(bins, np.bincount(values, minlength=10))
    assert largest[0] == values.max()


@cuda.jit
def warp_kernel(values, sums, votes):
    i = cuda.grid(1)
    value = values[i]
    votes[i] = cuda.ballot_sync(0xFFFFFFFF, value > 0)
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    if i % 32 == 0:
        sums[i // 32] = value


@case
def shuffles_and_votes():
    values = RNG.integers(-5, 5, 128).astype(np.int32)
    sums, votes = np.zeros(4, np.int32), np.zeros(128, np.uint32)
    warp_kernel[1, 128](values, sums, votes)
    rows = values.reshape(4, 32)
    np.testing.assert_array_equal(sums, rows.sum(1))
    np.testing.assert_array_equal(votes.reshape(4, 32)[:, 0], ((rows > 0) << np.arange(32, dtype=np.uint64)).sum(1))


@cuda.jit
def math_kernel(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0], out[i, 1], out[i, 2] = math.sin(x[i]), math.exp(x[i]), math.pow(abs(x[i]), 1.5)
        out[i, 3], out[i, 4], out[i, 5] = math.erf(x[i]), math.lgamma(abs(x[i]) + 0.1), math.atan2(x[i], 2.0)


@case
def double_precision_functions():
    x = RNG.uniform(-20, 20, 300)
    out = np.zeros((300, 6))
    math_kernel[3, 128](x, out)
    others = [[math.erf(v), math.lgamma(abs(v) + 0.1), math.atan2(v, 2.0)] for v in x]
    expected = np.column_stack([np.sin(x), np.exp(x), np.abs(x) ** 1.5, np.array(others)])
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


@cuda.jit
def single_kernel(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.cos(x[i]) + math.log1p(abs(x[i])) + math.tanh(x[i])


@case
def single_precision_functions():
    x = RNG.uniform(-20, 20, 300).astype(np.float32)
    out = np.zeros_like(x)
    single_kernel[3, 128](x, out)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(out, np.cos(exact) + np.log1p(np.abs(exact)) + np.tanh(exact), rtol=1e-4, atol=1e-5)


@cuda.jit(device=True, inline="never")
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@cuda.jit
def collatz_kernel(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = collatz(i + 1)


@case
def device_function():
    out = np.zeros(100, np.int64)
    collatz_kernel[1, 128](out)

    def steps(n):
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert out.tolist() == [steps(n) for n in range(1, 101)]


@cuda.jit
def mandelbrot_kernel(out, iterations):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        c = complex(-2.0 + 3.0 * x / out.shape[1], -1.0 + 2.0 * y / out.shape[0])
        z = 0.0j
        for i in range(iterations):
            z = z * z + c
            if z.real * z.real + z.imag * z.imag >= 4:
                out[y, x] = i
                return
        out[y, x] = iterations


@case
def mandelbrot_with_complex_numbers():
    out = np.zeros((30, 45), np.int32)
    mandelbrot_kernel[(3, 2), (16, 16)](out, 20)
    x, y = np.meshgrid(-2.0 + 3.0 * np.arange(45) / 45, -1.0 + 2.0 * np.arange(30) / 30)
    c, z, expected = x + 1j * y, np.zeros((30, 45), complex), np.full((30, 45), 20)
    for i in range(20):
        z = np.where(expected == 20, z * z + c, z)
        expected = np.where((expected == 20) & (z.real**2 + z.imag**2 >= 4), i, expected)
    np.testing.assert_array_equal(out, expected)


TABLE = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32)


@cuda.jit
def local_kernel(out):
    table = cuda.const.array_like(TABLE)
    held = cuda.local.array(8, int32)
    i = cuda.grid(1)
    for j in range(8):
        held[j] = table[(i + j) % 8]
    for j in range(8):  # insertion sort of private memory
        value, k = held[j], j
        while k > 0 and held[k - 1] > value:
            held[k] = held[k - 1]
            k -= 1
        held[k] = value
    out[i] = held[i % 8]


@case
def constant_and_local_arrays():
    out = np.zeros(64, np.int32)
    local_kernel[2, 32](out)
    np.testing.assert_array_equal(out, np.tile(np.sort(TABLE), 8))


PARTICLE = np.dtype([("position", np.float32, 3), ("mass", np.float64), ("kind", np.int8)], align=True)


@cuda.jit
def record_kernel(particles):
    i = cuda.grid(1)
    if i < particles.size:
        particles[i].mass *= 2
        particles[i].position[1] += particles[i].kind


@case
def records():
    particles = np.zeros(50, PARTICLE)
    particles["mass"], particles["kind"] = RNG.random(50), RNG.integers(-3, 3, 50)
    expected = particles.copy()
    record_kernel[1, 64](particles)
    expected["mass"] *= 2
    expected["position"][:, 1] += expected["kind"]
    np.testing.assert_array_equal(particles, expected)


@numba.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
def relative_difference(x, y):
    return 2 * (x - y) / (x + y)


@case
def universal_function():
    for kind in (np.float32, np.float64):
        x, y = RNG.random(500).astype(kind) + 1, RNG.random(500).astype(kind) + 1
        np.testing.assert_allclose(relative_difference(x, y), 2 * (x - y) / (x + y), rtol=1e-5, atol=1e-6)


@numba.guvectorize(["void(float32[:,:], float32[:], float32[:])"], "(m,n),(n)->(m)", target="cuda")
def rows_times_vector(matrix, vector, out):
    for i in range(matrix.shape[0]):
        total = float32(0.0)
        for j in range(matrix.shape[1]):
            total += matrix[i, j] * vector[j]
        out[i] = total


@case
def generalised_universal_function():
    matrices, vectors = RNG.random((10, 4, 6), np.float32), RNG.random((10, 6), np.float32)
    np.testing.assert_allclose(
        rows_times_vector(matrices, vectors), np.einsum("bmn,bn->bm", matrices, vectors), rtol=1e-5
    )


@cuda.jit
def pi_kernel(states, draws, out):
    i = cuda.grid(1)
    inside = 0
    for _ in range(draws):
        x, y = xoroshiro128p_uniform_float32(states, i), xoroshiro128p_uniform_float32(states, i)
        if x * x + y * y <= 1:
            inside += 1
    out[i] = 4 * inside / draws


@case
def random_numbers():
    states = create_xoroshiro128p_states(256, seed=1)
    out = np.zeros(256, np.float64)
    pi_kernel[4, 64](states, 50, out)
    assert abs(out.mean() - math.pi) < 0.05


@case
def streams_events_and_pinned_memory():
    stream = cuda.stream()
    start, end = cuda.event(), cuda.event()
    a = cuda.pinned_array(1000, np.float32)
    a[:] = np.arange(1000)
    start.record(stream)
    on_device = cuda.to_device(a, stream=stream)
    out = cuda.device_array_like(on_device, stream=stream)
    add_kernel[8, 128, stream](on_device, on_device, out)
    end.record(stream)
    copied = out.copy_to_host(stream=stream)
    stream.synchronize()
    assert cuda.event_elapsed_time(start, end) >= 0
    np.testing.assert_array_equal(copied, 2 * a)


@cuda.jit
def half_kernel(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * b[i] + a[i]


@case
def half_precision():
    a, b = RNG.random(100).astype(np.float16), RNG.random(100).astype(np.float16)
    out = np.zeros_like(a)
    half_kernel[1, 128](a, b, out)
    np.testing.assert_allclose(out.astype(np.float64), a.astype(np.float64) * b + a, rtol=2e-3)


@cuda.jit
def dynamic_kernel(values, out):
    held = cuda.shared.array(0, float32)
    i = cuda.threadIdx.x
    held[i] = values[i]
    cuda.syncthreads()
    out[i] = held[cuda.blockDim.x - 1 - i]


@case
def dynamic_shared_memory():
    values = RNG.random(96, np.float32)
    out = np.zeros_like(values)
    dynamic_kernel[1, 96, 0, 96 * 4](values, out)
    np.testing.assert_array_equal(out, values[::-1])


@cuda.jit
def scan_kernel(values, out):
    held = cuda.shared.array(256, int32)
    i = cuda.threadIdx.x
    held[i] = values[i]
    step = 1
    while step < 256:
        cuda.syncthreads()
        other = held[i - step] if i >= step else 0
        cuda.syncthreads()
        held[i] += other
        step *= 2
    out[i] = held[i]


@case
def prefix_sums():
    values = RNG.integers(0, 100, 256).astype(np.int32)
    out = np.zeros_like(values)
    scan_kernel[1, 256](values, out)
    np.testing.assert_array_equal(out, np.cumsum(values))


@cuda.jit("void(int32[:,:])")
def rows_in_turn(matrix):
    """Each row is the one above it, reversed, plus one: written by threads of other blocks."""
    column = cuda.grid(1)
    for row in range(1, matrix.shape[0]):
        matrix[row, column] = matrix[row - 1, matrix.shape[1] - 1 - column] + 1
        cuda.cg.this_grid().sync()


@case
def barrier_of_the_grid():
    matrix = np.zeros((6, 128), np.int32)
    matrix[0] = RNG.integers(0, 100, 128)
    expected = matrix.copy()
    rows_in_turn[4, 32](matrix)
    for row in range(1, 6):
        expected[row] = expected[row - 1, ::-1] + 1
    np.testing.assert_array_equal(matrix, expected)


LINKED = cuda.CUSource("""
extern "C" __device__ int smooth(float *out, float left, float middle, float right) {
    *out = (left + 2 * middle + right) / 4;
    return 0;
}
""")
smooth = cuda.declare_device("smooth", "float32(float32, float32, float32)", link=LINKED)


@cuda.jit
def smooth_kernel(values, out):
    i = cuda.grid(1)
    if 0 < i < values.size - 1:
        out[i] = smooth(values[i - 1], values[i], values[i + 1])


@case
def a_function_of_linked_source():
    values = RNG.random(500, np.float32)
    out = values.copy()
    smooth_kernel[4, 128](values, out)
    np.testing.assert_allclose(out[1:-1], (values[:-2] + 2 * values[1:-1] + values[2:]) / 4, rtol=1e-6)


@cuda.jit
def print_kernel(values):
    i = cuda.grid(1)
    if i == 1:
        print("thread", i, "has", values[i])


@case
def printing():
    print_kernel[1, 4](np.array([0.5, 1.5, 2.5, 3.5]))
    cuda.synchronize()


run_all()

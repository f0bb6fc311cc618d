"""Programs of Dr.Jit on its CUDA backend, each against NumPy."""

from __future__ import annotations

import drjit as dr
import numpy as np
from cases import case, run_all
from drjit.cuda import PCG32, Array3f, Float, Float16, Float64, Int, Int64, Matrix3f, UInt

RNG = np.random.default_rng(0)


@case
def arithmetic_and_sums():
    x, y = RNG.random(1000, np.float32), RNG.random(1000, np.float32) + 1
    a, b = Float(x), Float(y)
    np.testing.assert_allclose((dr.fma(a, b, 1) / b - a).numpy(), (x * y + 1) / y - x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(dr.sum(a * b).numpy(), [(x * y).sum()], rtol=1e-5)
    assert dr.max(a).numpy()[0] == x.max()
    assert dr.min(b).numpy()[0] == y.min()
    assert dr.count(a > 0.5).numpy()[0] == (x > 0.5).sum()


@case
def gathers_and_scatters_with_masks():
    values, places = RNG.random(500, np.float32), RNG.permutation(500).astype(np.uint32)
    held = Float(values)
    taken = dr.gather(Float, held, UInt(places), active=UInt(places) < 250)
    np.testing.assert_array_equal(taken.numpy(), np.where(places < 250, values[places], 0))
    made = dr.zeros(Float, 500)
    dr.scatter(made, held, UInt(places))
    np.testing.assert_array_equal(made.numpy()[places], values)


@case
def histogram_by_atomics():
    values = RNG.integers(0, 16, 4000).astype(np.uint32)
    bins = dr.zeros(UInt, 16)
    dr.scatter_reduce(dr.ReduceOp.Add, bins, UInt(1), UInt(values))
    np.testing.assert_array_equal(bins.numpy(), np.bincount(values, minlength=16))
    sums = dr.zeros(Float, 16)
    dr.scatter_reduce(dr.ReduceOp.Add, sums, Float(values) * 0.5, UInt(values))
    np.testing.assert_allclose(sums.numpy(), 0.5 * np.arange(16) * np.bincount(values, minlength=16), rtol=1e-6)


@dr.syntax
def escape_times(x, y, limit):
    real, imaginary, count = Float(0), Float(0), UInt(0)
    while (real * real + imaginary * imaginary < 4) & (count < limit):
        real, imaginary = real * real - imaginary * imaginary + x, 2 * real * imaginary + y
        count += 1
    return count


@case
def mandelbrot_in_a_symbolic_loop():
    x, y = (axis.ravel().astype(np.float32) for axis in np.meshgrid(np.linspace(-2, 1, 45), np.linspace(-1, 1, 30)))
    made = escape_times(Float(x), Float(y), 30).numpy()
    real, imaginary, counts = np.zeros_like(x), np.zeros_like(x), np.zeros(x.size, np.uint32)
    for _ in range(30):
        inside = real * real + imaginary * imaginary < 4
        counts += inside
        further = real * real - imaginary * imaginary + x, 2 * real * imaginary + y
        real, imaginary = (np.where(inside, new, old) for new, old in zip(further, (real, imaginary)))
    assert (made != counts).mean() < 0.01  # points whose last bit decides: one side rounds once, the other twice


@case
def gradients_in_both_directions():
    from drjit.cuda.ad import Float as Differentiable

    x = RNG.random(300, np.float32) + 0.5
    values = Differentiable(x)
    dr.enable_grad(values)
    dr.backward(dr.sum(dr.sin(values) * dr.log(values)))
    expected = np.cos(x) * np.log(x) + np.sin(x) / x
    np.testing.assert_allclose(dr.grad(values).numpy(), expected, rtol=1e-4, atol=1e-5)
    step = Differentiable(2)
    dr.enable_grad(step)
    made = Differentiable(x) * step * step
    dr.forward(step)
    np.testing.assert_allclose(dr.grad(made).numpy(), 4 * x, rtol=1e-6)


@case
def functions_of_one_and_two_precisions():
    x = RNG.uniform(0.1, 3, 400)
    functions = (
        (dr.sin, np.sin),
        (dr.exp, np.exp),
        (dr.log, np.log),
        (dr.sqrt, np.sqrt),
        (dr.tanh, np.tanh),
        (dr.atan, np.arctan),
    )
    for kind, made, tolerance in ((np.float32, Float, 1e-5), (np.float64, Float64, 1e-6)):
        for function, exact in functions:
            given = x.astype(kind)
            np.testing.assert_allclose(function(made(given)).numpy(), exact(given), rtol=tolerance, atol=tolerance)
    half = x.astype(np.float16)
    np.testing.assert_allclose((Float16(half) * 2 + 1).numpy(), half * np.float16(2) + np.float16(1), rtol=2e-3)


@case
def integers_of_32_and_64_bits():
    x = RNG.integers(-(2**31), 2**31, 500)
    y = RNG.integers(1, 1000, 500)
    a, b = Int64(x), Int64(y)
    np.testing.assert_array_equal((a * b).numpy(), x * y)
    np.testing.assert_array_equal((a >> 3 ^ b).numpy(), x >> 3 ^ y)
    small = x.astype(np.int32)
    np.testing.assert_array_equal(
        dr.popcnt(UInt(small.view(np.uint32))).numpy(), [int(v).bit_count() for v in small.view(np.uint32)]
    )
    np.testing.assert_array_equal((Int(small) // Int(y.astype(np.int32))).numpy(), np.trunc(small / y))
    wide = dr.mul_hi(UInt(small.view(np.uint32)), UInt(y.astype(np.uint32)))
    np.testing.assert_array_equal(
        wide.numpy(), (small.view(np.uint32).astype(np.uint64) * y.astype(np.uint64) >> np.uint64(32))
    )


@case
def vectors_and_matrices():
    rows, points = RNG.random((3, 3), np.float32), RNG.random((3, 200), np.float32)
    moved = Matrix3f(rows.tolist()) @ Array3f(*(Float(row) for row in points))
    np.testing.assert_allclose(moved.numpy(), rows @ points, rtol=1e-5)
    length = dr.norm(moved)
    np.testing.assert_allclose(length.numpy(), np.linalg.norm(rows @ points, axis=0), rtol=1e-5)
    np.testing.assert_allclose(dr.normalize(moved).numpy(), rows @ points / length.numpy(), rtol=1e-5)


@case
def prefix_sums_and_compaction():
    values = RNG.integers(0, 9, 3000).astype(np.uint32)
    sums = dr.cumsum(UInt(values))
    np.testing.assert_array_equal(sums.numpy(), np.cumsum(values))
    chosen = dr.compress(UInt(values) > 4)
    np.testing.assert_array_equal(chosen.numpy(), np.flatnonzero(values > 4))
    np.testing.assert_array_equal(dr.block_sum(UInt(values), 30).numpy(), values.reshape(-1, 30).sum(1))


def pcg32(count, draws):
    """The first ``draws`` of each of ``count`` streams of PCG32, as Dr.Jit seeds them."""
    state0, sequence0, factor = 0x853C49E6748FEA9B, 0xDA3E39CB94B95BDB, 0x5851F42D4C957F2D
    low = (1 << 64) - 1
    rows = []
    for lane in range(count):
        increment = (sequence0 + lane << 1 | 1) & low
        state = (increment + state0 + lane) * factor + increment & low
        row = []
        for _ in range(draws):
            old, state = state, state * factor + increment & low
            word, turn = ((old >> 18 ^ old) >> 27) & 0xFFFFFFFF, old >> 59
            row.append((word >> turn | word << (-turn & 31)) & 0xFFFFFFFF)
        rows.append(row)
    return np.array(rows, np.uint32)


@case
def random_numbers_and_calls_by_address():
    generator = PCG32(size=64)
    drawn = np.stack([generator.next_uint32().numpy() for _ in range(3)], axis=1)
    np.testing.assert_array_equal(drawn, pcg32(64, 3))
    which, x = RNG.integers(0, 3, 64).astype(np.uint32), RNG.random(64, np.float32)
    functions = [lambda v: v * 2, lambda v: v + 10, lambda v: v * v - 1]
    made = dr.switch(UInt(which), functions, Float(x)).numpy()
    np.testing.assert_allclose(made, np.choose(which, [f(x) for f in functions]), rtol=1e-6)


run_all()

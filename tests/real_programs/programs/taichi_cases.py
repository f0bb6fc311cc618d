"""Programs of Taichi on its CUDA backend, each against NumPy."""

import numpy as np
import taichi as ti
from cases import case, run_all

ti.init(arch=ti.cuda, offline_cache=False, random_seed=1, device_memory_GB=0.25)
RNG = np.random.default_rng(0)


@ti.kernel
def saxpy(a: ti.f32, x: ti.types.ndarray(), y: ti.types.ndarray()):
    for i in x:
        y[i] = a * x[i] + y[i]


@case
def arrays_of_numpy():
    x, y = RNG.random(1000, np.float32), RNG.random(1000, np.float32)
    out = y.copy()
    saxpy(3.0, x, out)
    np.testing.assert_allclose(out, 3 * x + y, rtol=1e-6)


@ti.kernel
def julia(out: ti.template(), t: ti.f32):
    for i, j in out:
        c = ti.Vector([-0.8, ti.cos(t) * 0.2])
        z = ti.Vector([i / 24 - 1, j / 24 - 0.5]) * 2
        steps = 0
        while z.norm() < 20 and steps < 50:
            z = ti.Vector([z[0] ** 2 - z[1] ** 2, z[1] * z[0] * 2]) + c
            steps += 1
        out[i, j] = 1 - steps * 0.02


@case
def julia_set_in_a_field():
    out = ti.field(ti.f32, (48, 24))
    julia(out, 0.3)
    i, j = np.meshgrid(np.arange(48), np.arange(24), indexing="ij")
    z = (((i / 24 - 1) + 1j * (j / 24 - 0.5)) * 2).astype(np.complex64)
    c, steps = np.complex64(-0.8 + 1j * np.cos(0.3) * 0.2), np.zeros((48, 24), int)
    for _ in range(50):
        inside = np.abs(z) < 20
        steps += inside
        z = np.where(inside, z * z + c, z)
    assert (np.abs(out.to_numpy() - (1 - steps * 0.02)) > 1e-5).mean() < 0.02  # chaotic in their last bits


@ti.kernel
def count_and_sum(values: ti.types.ndarray(), bins: ti.template()) -> ti.i32:
    total = 0
    for i in values:
        ti.atomic_add(bins[values[i]], 1)
        total += values[i]
    return total


@case
def atomics_and_reductions():
    values = RNG.integers(0, 10, 3000).astype(np.int32)
    bins = ti.field(ti.i32, 10)
    assert count_and_sum(values, bins) == values.sum()
    np.testing.assert_array_equal(bins.to_numpy(), np.bincount(values, minlength=10))


@ti.kernel
def product(a: ti.types.ndarray(), b: ti.types.ndarray(), out: ti.types.ndarray()):
    for i, j in out:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        out[i, j] = total


@case
def matrix_product():
    a, b = RNG.random((20, 30), np.float32), RNG.random((30, 25), np.float32)
    out = np.zeros((20, 25), np.float32)
    product(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)


@ti.kernel
def forces(positions: ti.template(), made: ti.template()):
    for i in positions:
        force = ti.Vector([0.0, 0.0, 0.0])
        for j in range(positions.shape[0]):
            between = positions[j] - positions[i]
            force += between / (between.norm_sqr() + 0.01) ** 1.5
        made[i] = force


@case
def bodies_as_vectors():
    places = RNG.random((60, 3)).astype(np.float32)
    positions, made = ti.Vector.field(3, ti.f32, 60), ti.Vector.field(3, ti.f32, 60)
    positions.from_numpy(places)
    forces(positions, made)
    between = (places[None] - places[:, None]).astype(np.float64)
    expected = (between / ((between**2).sum(-1, keepdims=True) + 0.01) ** 1.5).sum(1)
    np.testing.assert_allclose(made.to_numpy(), expected, rtol=1e-3, atol=1e-3)


@ti.func
def neighbours(cells: ti.template(), i, j):
    count = 0
    for step in ti.static(ti.ndrange((-1, 2), (-1, 2))):
        if ti.static(step[0] != 0 or step[1] != 0):
            count += cells[(i + step[0]) % 16, (j + step[1]) % 16]
    return count


@ti.kernel
def live(cells: ti.template(), after: ti.template()):
    for i, j in cells:
        count = neighbours(cells, i + 16, j + 16)
        after[i, j] = ti.cast(count == 3 or (count == 2 and cells[i, j] == 1), ti.i32)


@case
def game_of_life():
    cells = RNG.integers(0, 2, (16, 16)).astype(np.int32)
    before, after = ti.field(ti.i32, (16, 16)), ti.field(ti.i32, (16, 16))
    before.from_numpy(cells)
    for _ in range(4):
        live(before, after)
        before.copy_from(after)
        around = sum(np.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - cells
        cells = ((around == 3) | ((around == 2) & (cells == 1))).astype(np.int32)
    np.testing.assert_array_equal(before.to_numpy(), cells)


@case
def gradients_on_a_tape():
    x, loss = ti.field(ti.f32, 40, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def total():
        for i in x:
            loss[None] += ti.sin(x[i]) * x[i]

    values = RNG.random(40, np.float32)
    x.from_numpy(values)
    with ti.ad.Tape(loss):
        total()
    np.testing.assert_allclose(loss[None], (np.sin(values) * values).sum(), rtol=1e-5)
    np.testing.assert_allclose(x.grad.to_numpy(), np.cos(values) * values + np.sin(values), rtol=1e-5)


run_all()

"""``python numba_kernels.py FOLDER``: kernels in Python to PTX by numba-cuda, without a GPU."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

from numba import complex64, complex128, cuda, float32, float64, int32, int64, void
from numba.cuda import dispatcher

TILE = 16
CAPABILITY = (9, 0)


def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


def matmul(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    row, column = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for start in range(0, a.shape[1], TILE):
        left[x, y] = a[row, start + y]
        right[x, y] = b[start + x, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[x, k] * right[k, y]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def histogram(values, counts):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, int(values[i]) % counts.size, 1)


def block_sum(values, out):
    shared = cuda.shared.array(256, float64)
    i, t = cuda.grid(1), cuda.threadIdx.x
    shared[t] = values[i] if i < values.size else 0
    cuda.syncthreads()
    step = 128
    while step:
        if t < step:
            shared[t] += shared[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, shared[0])


def mandelbrot(out, limit):
    x, y = cuda.grid(2)
    point, z = complex(x * 0.01 - 2.0, y * 0.01 - 1.0), 0j
    for step in range(limit):
        z = z * z + point
        if z.real * z.real + z.imag * z.imag > 4.0:
            out[x, y] = step
            return
    out[x, y] = limit


def black_scholes(price, strike, years, call, put):
    i = cuda.grid(1)
    if i >= price.size:
        return
    root = math.sqrt(years[i])
    d1 = (math.log(price[i] / strike[i]) + 0.065 * years[i]) / (0.3 * root)
    d2 = d1 - 0.3 * root
    n1, n2 = 0.5 * (1 + math.erf(d1 / 1.4142135)), 0.5 * (1 + math.erf(d2 / 1.4142135))
    discount = strike[i] * math.exp(-0.02 * years[i])
    call[i] = price[i] * n1 - discount * n2
    put[i] = discount * (1 - n2) - price[i] * (1 - n1)


def stencil(before, after):
    x, y, z = cuda.grid(3)
    if 0 < x < before.shape[0] - 1 and 0 < y < before.shape[1] - 1 and 0 < z < before.shape[2] - 1:
        around = before[x - 1, y, z] + before[x + 1, y, z] + before[x, y - 1, z] + before[x, y + 1, z]
        after[x, y, z] = (around + before[x, y, z - 1] + before[x, y, z + 1]) / 6


def bodies(positions, forces):
    i = cuda.grid(1)
    if i >= positions.shape[0]:
        return
    fx = fy = fz = 0.0
    for j in range(positions.shape[0]):
        dx, dy, dz = (
            positions[j, 0] - positions[i, 0],
            positions[j, 1] - positions[i, 1],
            positions[j, 2] - positions[i, 2],
        )
        inverse = 1 / math.sqrt(dx * dx + dy * dy + dz * dz + 1e-9)
        weight = positions[j, 3] * inverse * inverse * inverse
        fx, fy, fz = fx + dx * weight, fy + dy * weight, fz + dz * weight
    forces[i, 0], forces[i, 1], forces[i, 2] = fx, fy, fz


def transpose(a, b):
    tile = cuda.shared.array((32, 33), float32)
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 32 + cuda.threadIdx.x
    y = cuda.blockIdx.x * 32 + cuda.threadIdx.y
    if x < b.shape[1] and y < b.shape[0]:
        b[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


REALS = (float32, float64)
CASES = [
    *((saxpy, void(t, t[::1], t[::1])) for t in (float32, float64, complex64, complex128, int32)),
    *((saxpy, void(t, t[:], t[:])) for t in REALS),
    *((matmul, void(t[:, ::1], t[:, ::1], t[:, ::1])) for t in REALS),
    (matmul, void(float32[:, :], float32[:, :], float32[:, :])),
    *((histogram, void(t[::1], int32[::1])) for t in (int32, int64, float32)),
    *((block_sum, void(t[::1], float64[::1])) for t in (float32, float64, int32)),
    *((mandelbrot, void(t[:, ::1], int64)) for t in (int32, float64)),
    *((black_scholes, void(*[t[::1]] * 5)) for t in REALS),
    *((stencil, void(t[:, :, ::1], t[:, :, ::1])) for t in REALS),
    *((bodies, void(t[:, ::1], t[:, ::1])) for t in REALS),
    *((transpose, void(t[:, ::1], t[:, ::1])) for t in REALS),
]

# Numba's own functions, such as shuffles, are compiled for the current device, and there need not be one.
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)
for number, (function, signature) in enumerate(CASES):
    text, _ = cuda.compile_ptx(function, signature, cc=CAPABILITY)
    (Path(sys.argv[1]) / f"numba_{number:02}_{function.__name__}.ptx").write_text(text.rstrip("\0\n") + "\n")

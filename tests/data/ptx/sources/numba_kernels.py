"""Numba kernels of the corpus. `python numba_kernels.py` compiles them to PTX, without a GPU.

Needs numba-cuda 0.30 and CUDA 13.
"""

from pathlib import Path
from types import SimpleNamespace

from numba import complex64, cuda, float32, float64, int32, int64, void
from numba.cuda import dispatcher

TILE = 16
ROW = float32[::1]
MATRIX = float32[:, ::1]


def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


def matmul(a, b, c):
    """Tiles of shared memory, and bounds that Numba checks."""
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
        cuda.atomic.add(counts, values[i] % counts.size, 1)


def warp_sum(values, out):
    """Shuffles, votes, and a division that may fail."""
    i = cuda.grid(1)
    total = values[i]
    for offset in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
    if cuda.laneid == 0:
        out[i // 32] = total / cuda.popc(cuda.activemask())


def mandelbrot(out, limit):
    """Complex numbers, a loop with two ways out, a local array."""
    x, y = cuda.grid(2)
    last = cuda.local.array(4, float64)
    point = complex(x * 0.01 - 2.0, y * 0.01 - 1.0)
    z = 0j
    for step in range(limit):
        z = z * z + point
        last[step & 3] = z.real
        if z.real * z.real + z.imag * z.imag > 4.0:
            out[x, y] = z * last[(step + 1) & 3]
            return
    out[x, y] = 0j


CASES = [
    (saxpy, void(float32, ROW, ROW), {}),
    (matmul, void(MATRIX, MATRIX, MATRIX), {}),
    (histogram, void(int64[::1], int32[::1]), {}),
    (warp_sum, void(float64[:], float64[:]), {"lineinfo": True}),
    (mandelbrot, void(complex64[:, ::1], int64), {}),
]

# Numba's own functions, such as shuffles, are compiled for the current device, and there need not be one.
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(8, 0))
for function, signature, options in CASES:
    text, _ = cuda.compile_ptx(function, signature, cc=(8, 0), **options)
    # The name of this folder and the version of the compiler do not belong into the file.
    lines = [line for line in text.splitlines() if not line.startswith(("// Compiler Build", "// Cuda compilation"))]
    clean = "\n".join(lines).replace(f'"{Path(__file__).parent}/', '"').rstrip("\0\n") + "\n"
    Path(f"numba_{function.__name__}.sm_80.ptx").write_text(clean)

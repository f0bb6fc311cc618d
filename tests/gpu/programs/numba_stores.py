"""Coalesced and strided stores in numba-cuda, 8 192 threads each; prints checksums."""

import warnings

import numpy as np

if not hasattr(np, "row_stack"):  # which some numba-cuda still looks for, and NumPy 2.5 has no more
    np.row_stack = np.vstack  # noqa: NPY201

from numba import cuda

warnings.filterwarnings("ignore", message=".*under-utilization.*")
THREADS = 8192


@cuda.jit
def coalesced_store(values):
    index = cuda.grid(1)
    if index < values.size:
        values[index] = index


@cuda.jit
def strided_store(values):
    index = cuda.grid(1)
    if index * 2 < values.size:
        values[index * 2] = index


for kernel, size in ((coalesced_store, THREADS), (strided_store, 2 * THREADS)):
    values = cuda.to_device(np.zeros(size, np.int32))
    kernel[THREADS // 256, 256](values)
    cuda.synchronize()
    print(kernel.py_func.__name__, values.copy_to_host().sum())

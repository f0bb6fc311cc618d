"""A kernel of numba-cuda with shared memory."""

import numpy as np
from numba import cuda, float32


@cuda.jit
def reverse(x, y):
    tile = cuda.shared.array(128, float32)
    at, lane = cuda.grid(1), cuda.threadIdx.x
    tile[lane] = x[at]
    cuda.syncthreads()
    y[at] = tile[127 - lane]


x = np.random.default_rng(0).standard_normal(1024).astype(np.float32)
y = np.zeros_like(x)
reverse[8, 128](x, y)
np.testing.assert_array_equal(y.reshape(8, 128), x.reshape(8, 128)[:, ::-1])
print("ok")

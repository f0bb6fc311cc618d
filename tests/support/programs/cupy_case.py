"""CuPy: an elementwise kernel, a reduction, and a raw kernel."""

import cupy
import numpy as np

host = np.random.default_rng(0).standard_normal(10000).astype(np.float32)
x = cupy.asarray(host)
add = cupy.RawKernel(
    'extern "C" __global__ void add(const float *x, float *y, int n)'
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] + 1.0f; }",
    "add",
)
y = cupy.zeros_like(x)
add((40,), (256,), (x, y, np.int32(x.size)))
np.testing.assert_array_equal(cupy.asnumpy(y), host + 1)
np.testing.assert_allclose(float((x * x).sum()), float((host * host).sum()), rtol=1e-4)
print("ok")

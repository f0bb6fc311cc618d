"""CuPy: an elementwise kernel of its own and a RawKernel."""

import cupy

kernel = cupy.RawKernel(
    r"""
extern "C" __global__ void scale_add(const float* x, float* y, float a, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + 1.0f;
}
""",
    "scale_add",
)
n = 50_000
x = cupy.arange(n, dtype=cupy.float32)
y = cupy.zeros_like(x)
kernel(((n + 127) // 128,), (128,), (x, y, cupy.float32(3.0), cupy.int32(n)))
print("cupy", float((y * 2.0).astype(cupy.float64).sum()))

"""Programs of PyCUDA, each against NumPy."""

from __future__ import annotations

import numpy as np
import pycuda.autoinit  # noqa: F401 - makes a context
import pycuda.driver as drv
from cases import case, run_all
from pycuda import gpuarray
from pycuda.compiler import SourceModule
from pycuda.elementwise import ElementwiseKernel
from pycuda.reduction import ReductionKernel
from pycuda.scan import InclusiveScanKernel

RNG = np.random.default_rng(0)
SOURCE = """
__constant__ float factors[4];
__global__ void multiply(float *out, const float *a, const float *b) { const int i = threadIdx.x; out[i] = a[i] * b[i]; }
__global__ void scale(float *values, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= factors[i % 4];
}
__global__ void reverse(float *values) {
    extern __shared__ float held[];
    held[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}
"""
MODULE = SourceModule(SOURCE)


@case
def a_module_of_source():
    a, b = RNG.random(400, np.float32), RNG.random(400, np.float32)
    out = np.zeros_like(a)
    MODULE.get_function("multiply")(drv.Out(out), drv.In(a), drv.In(b), block=(400, 1, 1), grid=(1, 1))
    np.testing.assert_array_equal(out, a * b)


@case
def constants_and_prepared_calls():
    factors, values = np.array([1, 2, 3, 4], np.float32), RNG.random(100, np.float32)
    drv.memcpy_htod(MODULE.get_global("factors")[0], factors)
    held = drv.to_device(values)
    scale = MODULE.get_function("scale")
    scale.prepare("Pi")
    scale.prepared_call((4, 1), (32, 1, 1), held, 100)
    np.testing.assert_array_equal(drv.from_device_like(held, values), values * np.tile(factors, 25))


@case
def dynamic_shared_memory():
    values = RNG.random(64, np.float32)
    out = values.copy()
    MODULE.get_function("reverse")(drv.InOut(out), block=(64, 1, 1), grid=(1, 1), shared=256)
    np.testing.assert_array_equal(out, values[::-1])


@case
def arrays_on_the_gpu():
    a, b = RNG.random((30, 20)), RNG.random((30, 20))
    x, y = gpuarray.to_gpu(a), gpuarray.to_gpu(b)
    np.testing.assert_allclose((2 * x - y / x + 1).get(), 2 * a - b / a + 1)
    np.testing.assert_allclose(gpuarray.sum(x).get(), a.sum())
    np.testing.assert_allclose(gpuarray.dot(x.ravel(), y.ravel()).get(), (a * b).sum())
    assert gpuarray.max(x).get() == a.max()


@case
def elementwise_kernel():
    x, y = RNG.random(500, np.float32), RNG.random(500, np.float32)
    out = gpuarray.empty(500, np.float32)
    combine = ElementwiseKernel(
        "float a, float *x, float b, float *y, float *z", "z[i] = a * x[i] + b * y[i]", "combine"
    )
    combine(5, gpuarray.to_gpu(x), 6, gpuarray.to_gpu(y), out)
    np.testing.assert_allclose(out.get(), 5 * x + 6 * y, rtol=1e-6)


@case
def reduction_kernel():
    x, y = RNG.random(4000, np.float32), RNG.random(4000, np.float32)
    dot = ReductionKernel(np.float32, "0", "a + b", map_expr="x[i] * y[i]", arguments="float *x, float *y")
    np.testing.assert_allclose(dot(gpuarray.to_gpu(x), gpuarray.to_gpu(y)).get(), x @ y, rtol=1e-5)


@case
def scan_kernel():
    values = RNG.integers(0, 100, 3000).astype(np.int32)
    held = gpuarray.to_gpu(values)
    InclusiveScanKernel(np.int32, "a + b")(held)
    np.testing.assert_array_equal(held.get(), np.cumsum(values))


@case
def streams_and_events():
    stream, start, end = drv.Stream(), drv.Event(), drv.Event()
    host = drv.pagelocked_empty(1000, np.float32)
    host[:] = RNG.random(1000)
    start.record(stream)
    held = gpuarray.to_gpu_async(host, stream=stream)
    end.record(stream)
    end.synchronize()
    assert start.time_till(end) >= 0
    np.testing.assert_array_equal(held.get(), host)


run_all()

"""Coalesced and strided stores in CuPy, 8 192 threads each; prints checksums."""

import cupy

CODE = """
extern "C" __global__ void coalesced_store(int* values, int size) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < size) values[index] = index;
}
extern "C" __global__ void strided_store(int* values, int size) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < size) values[2 * index] = index;
}
"""
THREADS = 8192

module = cupy.RawModule(code=CODE)
for name, size in (("coalesced_store", THREADS), ("strided_store", 2 * THREADS)):
    values = cupy.zeros(size, dtype=cupy.int32)
    module.get_function(name)((THREADS // 256,), (256,), (values, THREADS))
    print(name, int(values.sum()))

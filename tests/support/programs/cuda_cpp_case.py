"""CUDA C++ with the CUDA runtime, compiled by nvcc with line information."""

from nvcc import build_and_run

build_and_run(
    """#include <cstdio>
__global__ void add(const float *a, const float *b, float *c, int n)
{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }
int main() {
    const int n = 4096; float *a, *b, *c;
    cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); cudaMallocManaged(&c, n * 4);
    for (int i = 0; i < n; ++i) { a[i] = i; b[i] = 2 * i; }
    add<<<16, 256>>>(a, b, c, n);
    if (cudaDeviceSynchronize() != cudaSuccess) return 1;
    for (int i = 0; i < n; ++i) if (c[i] != 3.0f * i) return 2;
    puts("ok");
}
"""
)

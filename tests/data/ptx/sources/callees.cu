// Kernels whose functions are called, not inlined.
#include <cuda_runtime.h>
#include <math.h>
__device__ int counted;
__constant__ float factors[4];
extern "C" __global__ void double_math(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = sin(x[i]) + cos(3.0 * x[i]) + pow(fabs(x[i]), 1.7) + x[i] / (1.0 + x[i] * x[i]);
}
__device__ __noinline__ float gather(const float* p, int i, int n) {
    float sum = 0;
    for (int k = 0; k <= (i & 3); ++k) sum += p[(i + k) % n];
    return sum;
}
__device__ __noinline__ float twice(const float* p, int i, int n) {
    if (i & 1) return gather(p, i, n);
    return gather(p, i, n) + gather(p, i + 7, n);
}
extern "C" __global__ void nested(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < 3; ++k) sum += twice(x, i + k, n);
    y[i] = sum;
}
__device__ __noinline__ void leave(int i, float* y) {
    if (i % 5 == 0) { y[i] = -1; asm volatile("exit;"); }
    y[i] += 1;
}
extern "C" __global__ void leaves(float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    leave(i, y);
    y[i] *= 2;
}
__device__ __noinline__ float scaled(float x, int i) {
    atomicAdd(&counted, 1);
    return x * factors[i & 3];
}
extern "C" __global__ void variables_in_function(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = scaled(x[i], i);
}
__device__ __noinline__ float depth(const float* p, int n) {
    return n < 1 ? p[0] : p[n & 7] + depth(p, n - 1) * depth(p, n - 2);
}
extern "C" __global__ void recursive(const float* x, float* y, int n) {
    y[threadIdx.x] = depth(x, n & 7);
}

/* Kernels in which one thread, or the warp of one element, makes a number that is not finite; see births.py. */
#include <cuda_fp16.h>
#include <mma.h>

extern "C" __global__ void squares(float *values, int turns)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    float value = values[index];
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++)
        value = value * value;
    values[index] = value;
}

extern "C" __global__ void roots(float *values, int turns)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    float value = values[index];
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++)
        value = sqrtf(value - 1.0f);
    values[index] = value;
}

extern "C" __global__ void quotients(float *values, int turns)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    values[index] = (values[index] - turns) / (values[index] - turns);
}

/* Infinite and NaN literals of the kernel do not count as inputs. */
extern "C" __global__ void logarithms(float *values, int turns)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    values[index] = logf(values[index] + turns);
}

extern "C" __global__ void powers(float *values, int turns)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    values[index] = powf(values[index], 1.0f / turns);
}

extern "C" __global__ void sums(float *values, int turns)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    const __half value = __float2half(values[index]);
    __half sum = __float2half(0.0f);
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++)
        sum = __hfma(value, value, sum);
    values[index] = __half2float(sum);
}

extern "C" __global__ void products(float *values, int turns)
{
    using namespace nvcuda::wmma;
    __shared__ __half factors[8][256];
    __half *own = factors[threadIdx.x / 32];
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int i = 0; i < 256; i += 32)
        own[i + threadIdx.x % 32] = __float2half(0.0f);
    __syncwarp();
    if (threadIdx.x % 32 < 16)
        own[threadIdx.x % 32 * 17] = __float2half(values[index]);
    __syncwarp();
    fragment<matrix_a, 16, 16, 16, __half, row_major> a;
    fragment<matrix_b, 16, 16, 16, __half, col_major> b;
    fragment<accumulator, 16, 16, 16, __half> sum;
    load_matrix_sync(a, own, 16);
    load_matrix_sync(b, own, 16);
    fill_fragment(sum, __float2half(0.0f));
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++)
        mma_sync(sum, a, b, sum);
    values[index] = __half2float(sum.x[0]);
}

/* A pipeline of cp.async in which warp 5 has six times the work of the others, who wait for it at a barrier. */
#include <cstdio>
#include <cuda_pipeline.h>
#include <vector>

constexpr int THREADS = 256, TILES = 64, BLOCKS = 132;

__device__ __forceinline__ float refine(float value, int steps)
{
#pragma unroll 1
    for (int i = 0; i < steps; i++)
#pragma unroll
        for (int k = 0; k < 16; k++)
            value = value * 0.999f + 0.001f;
    return value;
}

__global__ void uneven_warps(float *out, const float4 *in, const int *steps)
{
    __shared__ float4 tile[2][THREADS];
    __shared__ float edge[THREADS];
    const float4 *own = in + blockIdx.x * TILES * THREADS;
    const int mine = steps[threadIdx.x / 32];
    __pipeline_memcpy_async(&tile[0][threadIdx.x], own + threadIdx.x, 16);
    __pipeline_commit();
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < TILES; i++) {
        if (i + 1 < TILES)
            __pipeline_memcpy_async(&tile[(i + 1) % 2][threadIdx.x], own + (i + 1) * THREADS + threadIdx.x, 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        const float4 values = tile[i % 2][threadIdx.x];
        const float refined = refine(values.x + values.y, mine) + refine(values.z + values.w, mine);
        edge[threadIdx.x] = refined;
        __syncthreads();
        sum += refined + edge[(threadIdx.x + 32) % THREADS];
        __syncthreads();
    }
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

int main()
{
    int host[8] = {4, 4, 4, 4, 4, 24, 4, 4}, *steps;
    float *out;
    float4 *in;
    std::vector<float> results(BLOCKS * THREADS);
    const size_t bytes = sizeof(float4) * BLOCKS * TILES * THREADS;
    cudaMalloc(&in, bytes);
    cudaMalloc(&out, results.size() * 4);
    cudaMalloc(&steps, sizeof host);
    cudaMemset(in, 0, bytes);
    cudaMemcpy(steps, host, sizeof host, cudaMemcpyHostToDevice);
    for (int launch = 0; launch < 3; launch++)
        uneven_warps<<<BLOCKS, THREADS>>>(out, in, steps);
    cudaMemcpy(results.data(), out, results.size() * 4, cudaMemcpyDeviceToHost);
    double total = 0;
    for (float sum : results)
        total += sum;
    printf("%.6f %s\n", total, cudaGetErrorString(cudaDeviceSynchronize()));
}

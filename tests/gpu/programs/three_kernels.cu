/* Three kernels for a reader who is asked, with the page Stalls and this file only, why each is slow. */
#include <cstdio>
#include <cuda_pipeline.h>
#include <vector>

constexpr int COUNT = 1 << 22, TILES = 256, FILTER_BLOCKS = 264, ROWS = 1056, ROW = 4096;

__global__ void scale_rows(const float *x, const int *row_of, const float *weight, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int row = row_of[i];
        float w = weight[row];
        y[i] = x[i] * w;
    }
}

__global__ void column_filter(const float4 *in, float *out, int tiles)
{
    __shared__ float4 stage[128];
    float sum = 0;
    for (int t = 0; t < tiles; t++) {
        __pipeline_memcpy_async(&stage[threadIdx.x], in + (size_t)(blockIdx.x * tiles + t) * 128 + threadIdx.x, 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        float4 v = stage[127 - threadIdx.x];
        for (int k = 0; k < 8; k++)
            sum = sum * 0.5f + v.x * v.y + v.z * v.w;
        __syncthreads();
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}

__global__ void row_norm(const float *x, float *y, int n)
{
    __shared__ float part[256];
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 256) {
        float v = x[(size_t)blockIdx.x * n + i];
        s += v * v;
    }
    part[threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        volatile float *p = part;
        for (int i = 1; i < 256; i++)
            p[0] = p[0] + p[i];
    }
    __syncthreads();
    float scale = rsqrtf(part[0] / n);
    for (int i = threadIdx.x; i < n; i += 256)
        y[(size_t)blockIdx.x * n + i] = x[(size_t)blockIdx.x * n + i] * scale;
}

int main()
{
    std::vector<int> rows(COUNT);
    for (int i = 0; i < COUNT; i++)
        rows[i] = (i * 2654435761u >> 4) % COUNT;
    float *x, *y, *weight;
    int *row_of;
    const size_t bytes = sizeof(float4) * 128 * TILES * FILTER_BLOCKS;
    cudaMalloc(&x, bytes);
    cudaMalloc(&y, bytes);
    cudaMalloc(&weight, COUNT * sizeof(float));
    cudaMalloc(&row_of, COUNT * sizeof(int));
    cudaMemset(x, 0, bytes);
    cudaMemset(weight, 0, COUNT * sizeof(float));
    cudaMemcpy(row_of, rows.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice);
    for (int launch = 0; launch < 20; launch++) {
        scale_rows<<<528, 256>>>(x, row_of, weight, y, COUNT);
        column_filter<<<FILTER_BLOCKS, 128>>>(reinterpret_cast<float4 *>(x), y, TILES);
        row_norm<<<ROWS, 256>>>(x, y, ROW);
    }
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}

// Three kernels with one loss each, without it where FIXED is defined. Sums are exact, so both print the same.
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

constexpr int TILE = 32, STEP = 8, ROWS = 8192, COLUMNS = 4096, THREADS = 256, STEPS = 20;

__global__ void scale(const float *in, float *out)
{
    const int thread = blockIdx.x * THREADS + threadIdx.x;
#ifdef FIXED
    const int index = thread;
#else
    const int index = thread % ROWS * COLUMNS + thread / ROWS; // neighboring threads access different rows
#endif
    out[index] = in[index] * 0.5f + 1.0f;
}

__global__ void transpose(const float *in, float *out)
{
#ifdef FIXED
    __shared__ float tile[TILE][TILE + 1];
#else
    __shared__ float tile[TILE][TILE]; // the lanes of a column have one bank
#endif
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP)
        tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * COLUMNS + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP)
        out[(y + k) * ROWS + x] = tile[threadIdx.x][threadIdx.y + k];
}

#ifdef FIXED
constexpr int SUM_COLUMNS = 8, SUM_ROWS = 32;
#else
constexpr int SUM_COLUMNS = THREADS, SUM_ROWS = 1; // 16 blocks leave most SMs idle
#endif

__global__ void sum_columns(const float *in, float *sums)
{
    __shared__ float part[SUM_ROWS][SUM_COLUMNS];
    const int column = blockIdx.x * SUM_COLUMNS + threadIdx.x;
    float sum = 0;
    for (int row = threadIdx.y; row < ROWS; row += SUM_ROWS)
        sum += in[row * COLUMNS + column];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    for (int row = 1; threadIdx.y == 0 && row < SUM_ROWS; ++row)
        sum += part[row][threadIdx.x];
    if (threadIdx.y == 0)
        sums[column] = sum;
}

int main()
{
    std::vector<float> host(size_t(ROWS) * COLUMNS), result(COLUMNS), turned(host.size());
    for (size_t i = 0; i < host.size(); ++i)
        host[i] = float(i % 97);
    float *in, *out, *columns, *sums;
    const size_t bytes = host.size() * sizeof(float);
    cudaMalloc(&in, bytes);
    cudaMalloc(&out, bytes);
    cudaMalloc(&columns, bytes);
    cudaMalloc(&sums, COLUMNS * sizeof(float));
    cudaMemcpy(in, host.data(), bytes, cudaMemcpyHostToDevice);
    for (int step = 0; step < STEPS; ++step) {
        scale<<<ROWS * COLUMNS / THREADS, THREADS>>>(in, out);
        transpose<<<dim3(COLUMNS / TILE, ROWS / TILE), dim3(TILE, STEP)>>>(out, columns);
        sum_columns<<<COLUMNS / SUM_COLUMNS, dim3(SUM_COLUMNS, SUM_ROWS)>>>(out, sums);
    }
    cudaMemcpy(result.data(), sums, COLUMNS * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(turned.data(), columns, bytes, cudaMemcpyDeviceToHost);
    double total = 0, weighted = 0;
    for (float value : result)
        total += value;
    for (size_t i = 0; i < turned.size(); ++i)
        weighted += double(i % 1009) * turned[i];
    printf("%.1f %.1f %s\n", total, weighted, cudaGetErrorString(cudaDeviceSynchronize()));
}

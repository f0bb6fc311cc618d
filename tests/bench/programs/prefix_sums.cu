// Prefix sums of a million numbers in three kernels: sums of blocks, their scan, and the addition of the results.
#include <cstdio>
#include <vector>

const int THREADS = 1024;

__global__ void scan(unsigned *values, unsigned *totals)
{
    __shared__ unsigned sums[2][THREADS];
    int thread = threadIdx.x, i = blockIdx.x * THREADS + thread, side = 0;
    sums[0][thread] = values[i];
    for (int distance = 1; distance < THREADS; distance *= 2) {
        __syncthreads();
        unsigned sum = sums[side][thread];
        if (thread >= distance)
            sum += sums[side][thread - distance];
        side = 1 - side;
        sums[side][thread] = sum;
    }
    values[i] = sums[side][thread];
    if (totals && thread == THREADS - 1)
        totals[blockIdx.x] = sums[side][thread];
}

__global__ void add_totals(unsigned *values, const unsigned *totals)
{
    if (blockIdx.x)
        values[blockIdx.x * THREADS + threadIdx.x] += totals[blockIdx.x - 1];
}

int main()
{
    const int n = THREADS * THREADS;
    std::vector<unsigned> host(n);
    for (int i = 0; i < n; i++)
        host[i] = i % 7;
    unsigned *values, *totals, last;
    cudaMalloc(&values, n * 4);
    cudaMalloc(&totals, THREADS * 4);
    cudaMemcpy(values, host.data(), n * 4, cudaMemcpyHostToDevice);
    scan<<<THREADS, THREADS>>>(values, totals);
    scan<<<1, THREADS>>>(totals, nullptr);
    add_totals<<<THREADS, THREADS>>>(values, totals);
    cudaMemcpy(&last, values + n - 1, 4, cudaMemcpyDeviceToHost);
    printf("%u %s\n", last, cudaGetErrorString(cudaGetLastError()));
}

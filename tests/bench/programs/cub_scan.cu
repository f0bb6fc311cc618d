// Reductions, scans and histograms of CUB over arrays of many sizes.
#include <cstdio>
#include <cub/cub.cuh>

__global__ void fill(int *values, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        values[i] = (i * 7919) % 1001 - 500;
}

int main()
{
    const int most = 8 << 20;
    int *values, *scanned, *total, *counts, last = 0, sum = 0;
    void *temporary;
    size_t bytes = 64 << 20;
    cudaMalloc(&values, most * sizeof *values);
    cudaMalloc(&scanned, most * sizeof *values);
    cudaMalloc(&total, sizeof *total);
    cudaMalloc(&counts, 101 * sizeof *counts);
    cudaMalloc(&temporary, bytes);
    fill<<<512, 256>>>(values, most);
    unsigned long long checksum = 0;
    for (int round = 0; round < 3000; round++) {
        int n = 1000 + (round * 104729) % (most - 1000);
        cub::DeviceScan::InclusiveSum(temporary, bytes, values, scanned, n);
        cub::DeviceReduce::Sum(temporary, bytes, values, total, n);
        cub::DeviceHistogram::HistogramEven(temporary, bytes, values, counts, 101, -500, 501, n);
        if (round % 50)
            continue;
        cudaMemcpy(&last, scanned + n - 1, sizeof last, cudaMemcpyDeviceToHost);
        cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost);
        checksum = checksum * 31 + (unsigned)last + (last == sum);
    }
    printf("%llu %s\n", checksum, cudaGetErrorString(cudaDeviceSynchronize()));
}

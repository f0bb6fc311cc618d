// Radix sorts and selections of CUB, on keys from a fixed generator.
#include <cstdio>
#include <cub/cub.cuh>

__global__ void fill(unsigned *keys, int n, unsigned seed)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        keys[i] = (i * 2654435761u) ^ (seed * 40503u);
}

int main()
{
    const int n = 4 << 20;
    unsigned *keys, *sorted, probe[3];
    void *temporary = nullptr;
    size_t bytes = 0;
    cudaMalloc(&keys, n * sizeof *keys);
    cudaMalloc(&sorted, n * sizeof *keys);
    cub::DeviceRadixSort::SortKeys(temporary, bytes, keys, sorted, n);
    cudaMalloc(&temporary, bytes);
    unsigned long long sum = 0;
    for (unsigned round = 0; round < 2000; round++) {
        fill<<<n / 256, 256>>>(keys, n, round);
        cub::DeviceRadixSort::SortKeys(temporary, bytes, keys, sorted, n);
        if (round % 100)
            continue;
        for (int i = 0; i < 3; i++)
            cudaMemcpy(&probe[i], sorted + (i + 1) * (n / 4), sizeof *keys, cudaMemcpyDeviceToHost);
        sum = sum * 31 + probe[0] + probe[1] + probe[2];
    }
    printf("%llu %s\n", sum, cudaGetErrorString(cudaDeviceSynchronize()));
}

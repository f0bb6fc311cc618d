// Bitonic sort of 32 768 numbers: 120 launches of one small kernel, each a pass over global memory.
#include <cstdio>
#include <vector>

__global__ void exchange(unsigned *values, int distance, int run)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, partner = i ^ distance;
    if (partner < i)
        return;
    unsigned low = values[i], high = values[partner];
    bool ascending = (i & run) == 0;
    if ((low > high) == ascending) {
        values[i] = high;
        values[partner] = low;
    }
}

int main()
{
    const int n = 1 << 15;
    std::vector<unsigned> host(n);
    for (int i = 0; i < n; i++)
        host[i] = i * 2654435761u;
    unsigned *values;
    cudaMalloc(&values, n * sizeof *values);
    cudaMemcpy(values, host.data(), n * sizeof *values, cudaMemcpyHostToDevice);
    for (int run = 2; run <= n; run *= 2)
        for (int distance = run / 2; distance > 0; distance /= 2)
            exchange<<<n / 256, 256>>>(values, distance, run);
    cudaMemcpy(host.data(), values, n * sizeof *values, cudaMemcpyDeviceToHost);
    int unsorted = 0;
    for (int i = 1; i < n; i++)
        unsorted += host[i - 1] > host[i];
    printf("%d unsorted, %u %u %s\n", unsorted, host[0], host[n - 1], cudaGetErrorString(cudaGetLastError()));
}

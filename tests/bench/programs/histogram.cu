// Histograms of 16 million bytes: atomics on shared memory, then on global memory.
#include <cstdio>

__global__ void fill(unsigned *words, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        words[i] = i * 2654435761u;
}

__global__ void count_bytes(const unsigned *words, int n, unsigned *bins)
{
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned word = words[i];
        for (int byte = 0; byte < 4; byte++)
            atomicAdd(&own[word >> 8 * byte & 255], 1);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

int main()
{
    const int n = 1 << 22;
    unsigned *words, *bins, host[256];
    cudaMalloc(&words, n * sizeof *words);
    cudaMalloc(&bins, sizeof host);
    cudaMemset(bins, 0, sizeof host);
    fill<<<512, 256>>>(words, n);
    count_bytes<<<256, 256>>>(words, n, bins);
    cudaMemcpy(host, bins, sizeof host, cudaMemcpyDeviceToHost);
    printf("%u %u %u %s\n", host[0], host[1], host[255], cudaGetErrorString(cudaGetLastError()));
}

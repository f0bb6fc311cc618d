// One launch of some seconds: persistent blocks that take tiles from a counter.
#include <cstdio>

__global__ void persistent(float *values, unsigned *next, unsigned tiles, int rounds)
{
    __shared__ unsigned tile;
    for (;;) {
        if (threadIdx.x == 0)
            tile = atomicAdd(next, 1);
        __syncthreads();
        unsigned mine = tile;
        __syncthreads();
        if (mine >= tiles)
            return;
        float value = values[mine % 4096 * blockDim.x + threadIdx.x];
        for (int i = 0; i < rounds; i++)
            value = value * 0.999f + 0.001f * threadIdx.x;
        values[mine % 4096 * blockDim.x + threadIdx.x] = value;
    }
}

int main()
{
    float *values, host[2];
    unsigned *next;
    cudaMalloc(&values, 4096 * 256 * sizeof *values);
    cudaMalloc(&next, sizeof *next);
    cudaMemset(values, 0, 4096 * 256 * sizeof *values);
    cudaMemset(next, 0, sizeof *next);
    persistent<<<264, 256>>>(values, next, 2000000, 400);
    cudaMemcpy(host, values + 77, sizeof host, cudaMemcpyDeviceToHost);
    printf("%.3g %.3g %s\n", host[0], host[1], cudaGetErrorString(cudaGetLastError()));
}

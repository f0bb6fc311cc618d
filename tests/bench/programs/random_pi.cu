// An estimate of pi from random points: integer arithmetic, a reduction within warps, one atomic per warp.
#include <cstdio>

__global__ void count_inside(unsigned long long *inside, int points)
{
    unsigned state = (blockIdx.x * blockDim.x + threadIdx.x) * 747796405u + 2891336453u;
    unsigned hits = 0;
    for (int i = 0; i < points; i++) {
        state = state * 1664525u + 1013904223u;
        float x = (state >> 8) / 16777216.0f;
        state = state * 1664525u + 1013904223u;
        float y = (state >> 8) / 16777216.0f;
        hits += x * x + y * y < 1;
    }
    for (int distance = 16; distance > 0; distance /= 2)
        hits += __shfl_down_sync(~0u, hits, distance);
    if (threadIdx.x % 32 == 0)
        atomicAdd(inside, hits);
}

int main()
{
    unsigned long long *inside, host;
    cudaMalloc(&inside, sizeof host);
    cudaMemset(inside, 0, sizeof host);
    count_inside<<<512, 256>>>(inside, 1000);
    cudaMemcpy(&host, inside, sizeof host, cudaMemcpyDeviceToHost);
    printf("%llu %s\n", host, cudaGetErrorString(cudaGetLastError()));
}

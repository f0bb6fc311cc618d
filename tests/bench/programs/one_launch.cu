// Nothing but one small launch: what is left is the start of the profiler.
#include <cstdio>

__global__ void set(int *value)
{
    *value = 7;
}

int main()
{
    int *value, host = 0;
    cudaMalloc(&value, sizeof *value);
    set<<<1, 1>>>(value);
    cudaMemcpy(&host, value, sizeof host, cudaMemcpyDeviceToHost);
    printf("%d %s\n", host, cudaGetErrorString(cudaGetLastError()));
}

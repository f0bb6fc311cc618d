// 400 000 launches of about two microseconds, over eight streams.
#include <cstdio>

__global__ void step(unsigned *values, unsigned by)
{
    values[blockIdx.x * blockDim.x + threadIdx.x] += by;
}

int main()
{
    const int streams = 8, n = 4 * 128;
    unsigned *values, host[streams];
    cudaStream_t stream[streams];
    cudaMalloc(&values, streams * n * sizeof *values);
    cudaMemset(values, 0, streams * n * sizeof *values);
    for (int s = 0; s < streams; s++)
        cudaStreamCreate(&stream[s]);
    for (int i = 0; i < 400000; i++)
        step<<<4, 128, 0, stream[i % streams]>>>(values + i % streams * n, i);
    cudaDeviceSynchronize();
    for (int s = 0; s < streams; s++)
        cudaMemcpy(&host[s], values + s * n, sizeof *values, cudaMemcpyDeviceToHost);
    for (int s = 0; s < streams; s++)
        printf("%u ", host[s]);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
}

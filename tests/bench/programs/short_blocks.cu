// saxpy with 2.2 million short blocks per launch: a record per warp of each launch would be many gigabytes.
#include <cstdio>

__global__ void saxpy(float *y, const float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

int main()
{
    const int blocks = 2200000, n = blocks * 64;
    float *x, *y, host[2];
    cudaMalloc(&x, n * sizeof *x);
    cudaMalloc(&y, n * sizeof *y);
    cudaMemset(x, 1, n * sizeof *x);
    cudaMemset(y, 0, n * sizeof *y);
    for (int round = 0; round < 1500; round++)
        saxpy<<<blocks, 64>>>(y, x, 0.5f, n);
    cudaMemcpy(host, y + n - 2, sizeof host, cudaMemcpyDeviceToHost);
    printf("%.6g %.6g %s\n", host[0], host[1], cudaGetErrorString(cudaGetLastError()));
}

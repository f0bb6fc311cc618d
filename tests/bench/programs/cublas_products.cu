// Matrix products of cuBLAS in many shapes.
#include <cstdio>
#include <cublas_v2.h>
#include <cuda_fp16.h>

__global__ void fill(float *values, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        values[i] = (i * 37 % 101) / 101.0f - 0.5f;
}

int main()
{
    const int most = 2048;
    float *a, *b, *c, host[2];
    cublasHandle_t handle;
    cudaMalloc(&a, most * most * sizeof *a);
    cudaMalloc(&b, most * most * sizeof *b);
    cudaMalloc(&c, most * most * sizeof *c);
    fill<<<256, 256>>>(a, most * most);
    fill<<<256, 256>>>(b, most * most);
    cublasCreate(&handle);
    const float one = 1, zero = 0;
    double sum = 0;
    for (int round = 0; round < 4000; round++) {
        int m = 128 << round % 5, n = 128 << round / 5 % 5, k = 256 << round % 3;
        cublasSgemm(handle, CUBLAS_OP_N, round % 2 ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &one, a, most, b, most, &zero, c, most);
        if (round % 100)
            continue;
        cudaMemcpy(host, c, sizeof host, cudaMemcpyDeviceToHost);
        sum += host[0] + host[1];
    }
    printf("%.5g %s\n", sum, cudaGetErrorString(cudaDeviceSynchronize()));
}

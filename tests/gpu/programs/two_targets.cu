// A kernel whose code depends on the target that it is compiled for, as those of CUTLASS do.
#include <cstdio>

__global__ void target(int *out)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    out[threadIdx.x] = 901;
#elif defined(__CUDA_ARCH__)
    out[threadIdx.x] = __CUDA_ARCH__;
#endif
}

int main()
{
    int *out, first = 0;
    cudaMalloc(&out, 32 * sizeof *out);
    for (int i = 0; i < 3; i++)
        target<<<1, 32>>>(out);
    cudaMemcpy(&first, out, sizeof first, cudaMemcpyDeviceToHost);
    printf("%d\n", first);
    return cudaGetLastError();
}

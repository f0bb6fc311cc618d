// Two stores of the same bytes, a strided load, and a sum in shared memory: each line has its own requests and sectors.
#include <cstdio>

__global__ void coalesced(float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 2.0f * i;
}

__global__ void strided(float *out, const float *in, int stride)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i * stride];
    out[i * stride] = value + 1.0f;
}

__global__ void sums(float *out, const float *in)
{
    __shared__ float parts[256];
    parts[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = parts[0];
}

int main()
{
    const int blocks = 32, threads = 256, stride = 8;
    float *in, *out;
    cudaMalloc(&in, blocks * threads * stride * sizeof(float));
    cudaMalloc(&out, blocks * threads * stride * sizeof(float));
    cudaMemset(in, 0, blocks * threads * stride * sizeof(float));
    coalesced<<<blocks, threads>>>(out);
    strided<<<blocks, threads>>>(out, in, stride);
    sums<<<blocks, threads>>>(out, in);
    cudaError_t status = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(status));
    return status != cudaSuccess;
}

// Cubins with line information of every architecture: two kernels, a function that both call, shared memory.
__device__ __noinline__ float weigh(float value, int lane) {
    return value * static_cast<float>(lane + 1);
}

extern "C" __global__ void scale(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = weigh(x[i], threadIdx.x);
}

extern "C" __global__ void reverse(const int *x, int *y) {
    __shared__ int tile[128];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    int value = tile[blockDim.x - 1 - threadIdx.x];
    atomicAdd(y, value);
    y[threadIdx.x + 1] = static_cast<int>(weigh(static_cast<float>(value), 1));
}

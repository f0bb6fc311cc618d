// The sum of an array: lanes of a warp by shuffles, warps of a block through shared memory, blocks by an atomic.
// Launch with a multiple of 32 threads.
__device__ float warp_sum(float value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(0xffffffff, value, distance);
    return value;
}

extern "C" __global__ void reduction(float *total, const float *input, int count) {
    __shared__ float warp_sums[32];
    float sum = 0;
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) sum += input[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < blockDim.x / 32 ? warp_sums[threadIdx.x] : 0);
        if (threadIdx.x == 0) atomicAdd(total, sum);
    }
}

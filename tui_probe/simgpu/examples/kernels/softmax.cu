// Softmax of each row of a matrix, one block per row. Launch with a power of two of threads, and as many floats of dynamic
// shared memory.
extern __shared__ float partial[];

template <typename Combine>
__device__ float block_reduce(float value, Combine combine) {
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] = combine(partial[threadIdx.x], partial[threadIdx.x + half]);
        __syncthreads();
    }
    float result = partial[0];
    __syncthreads();
    return result;
}

extern "C" __global__ void softmax(float *output, const float *input, int columns) {
    const float *from = input + (size_t)blockIdx.x * columns;
    float *to = output + (size_t)blockIdx.x * columns;
    float largest = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, from[i]);
    largest = block_reduce(largest, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += __expf(from[i] - largest);
    sum = block_reduce(sum, [](float a, float b) { return a + b; });
    for (int i = threadIdx.x; i < columns; i += blockDim.x) to[i] = __expf(from[i] - largest) / sum;
}

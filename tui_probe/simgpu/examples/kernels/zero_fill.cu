extern "C" __global__ void zero_fill(unsigned *output, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) output[i] = 0;
}

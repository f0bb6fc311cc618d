// Neighbouring threads write neighbouring elements: a warp's store touches 4 sectors of 32 bytes.
extern "C" __global__ void coalesced_store(unsigned *output, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) output[i] = i;
}

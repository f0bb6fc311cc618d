// Every other element: a warp's store touches twice the sectors of coalesced_store.
extern "C" __global__ void strided_store(unsigned *output, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) output[2 * i] = i;
}

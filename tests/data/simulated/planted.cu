// To be found: block 21 goes twenty times as many rounds, each store is 32 bytes from its neighbour's, and a launch of
// three blocks leaves an SM idle.
extern "C" __global__ void planted(const float *in, float *out, unsigned straggler)
{
    __shared__ float partial[12000];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned rounds = blockIdx.x == straggler ? 60 : 3;
    float sum = 0;
#pragma unroll 1
    for (unsigned round = 0; round < rounds; round++)
        sum += in[i + round * blockDim.x];
    partial[threadIdx.x] = sum;
    __syncthreads();
    out[i * 8] = partial[threadIdx.x];
}

// Loads and stores of shared memory with a known number of wavefronts: words STRIDE apart, 64 rounds, 8 blocks of a warp.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int ROUNDS = 64, BLOCKS = 8, LANES = 32;

template <int STRIDE> __global__ void strided(float *out) {
    __shared__ volatile float tile[LANES * STRIDE];
    float sum = threadIdx.x;
#pragma unroll 1
    for (int round = 0; round < ROUNDS; round++) {
        tile[threadIdx.x * STRIDE] = sum;
        sum += tile[(threadIdx.x ^ 1) * STRIDE];
    }
    out[blockIdx.x * LANES + threadIdx.x] = sum;
}

int main() {
    float *out;
    if (cudaMalloc(&out, BLOCKS * LANES * sizeof(float))) return 1;
    strided<1><<<BLOCKS, LANES>>>(out);
    strided<2><<<BLOCKS, LANES>>>(out);
    strided<8><<<BLOCKS, LANES>>>(out);
    strided<32><<<BLOCKS, LANES>>>(out);
    strided<33><<<BLOCKS, LANES>>>(out);
    std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}

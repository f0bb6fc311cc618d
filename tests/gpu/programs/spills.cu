// A loop with more values than registers, for -maxrregcount: every warp executes each round. `spills ROUNDS`
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

constexpr int VALUES = 48, BLOCKS = 8, THREADS = 128;

__global__ void spill(volatile float *data, int rounds) {
    float values[VALUES];
    volatile float *own = data + (blockIdx.x * THREADS + threadIdx.x) * VALUES;
#pragma unroll
    for (int i = 0; i < VALUES; i++) values[i] = own[i];
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < VALUES; i++) values[i] = values[i] * values[(i + 7) % VALUES] + own[i];
    }
#pragma unroll
    for (int i = 0; i < VALUES; i++) own[i] = values[i];
}

int main(int count, char **words) {
    float *data;
    const int rounds = count > 1 ? std::atoi(words[1]) : 100;
    if (cudaMalloc(&data, sizeof(float) * BLOCKS * THREADS * VALUES)) return 1;
    cudaMemset(data, 0, sizeof(float) * BLOCKS * THREADS * VALUES);
    for (int run = 0; run < 4; run++) spill<<<BLOCKS, THREADS>>>(data, rounds);
    std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}

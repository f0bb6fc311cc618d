// A latency bound kernel and a copy, launched 60 times each, or as often as the argument says, with naps in which results
// are saved. With -DWORK=N there are N dependent additions behind each load.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <unistd.h>

#ifndef WORK
#define WORK 0
#endif
constexpr int COUNT = 1 << 22, BLOCKS = 132, THREADS = 32, STEPS = 100, RUNS = 60, NAP_US = 5000;

__global__ void follow(const int *next, float *out, float step) {
    int at = blockIdx.x * THREADS + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < STEPS; i++) {
        int loaded = __ldcg(next + at);
#pragma unroll
        for (int j = 0; j < WORK; j++) sum += step;
        at = loaded;
    }
    out[blockIdx.x * THREADS + threadIdx.x] = sum + at;
}

__global__ void copy(const int *in, int *out) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < COUNT; at += gridDim.x * blockDim.x) out[at] = in[at];
}

__global__ void link(int *next) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    next[at] = (at * 1664525u + 1013904223u) % COUNT;
}

int main(int count, char **words) {
    const int runs = count > 1 ? std::atoi(words[1]) : RUNS;
    int *next, *other;
    float *out;
    if (cudaMalloc(&next, COUNT * 4) || cudaMalloc(&other, COUNT * 4) || cudaMalloc(&out, BLOCKS * THREADS * 4)) return 1;
    link<<<COUNT / 256, 256>>>(next);
    for (int run = 0; run < runs; run++) {
        follow<<<BLOCKS, THREADS>>>(next, out, 1.0f);
        copy<<<1056, 256>>>(next, other);
        cudaDeviceSynchronize();
        if (run < RUNS) usleep(NAP_US);
    }
    std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}

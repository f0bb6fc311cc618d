// When and where warps run.

struct Seen {
    long long start, end;
    unsigned sm, warp;
};

__device__ unsigned special(int which) {
    unsigned value;
    if (which == 0)
        asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
    else
        asm volatile("mov.u32 %0, %%warpid;" : "=r"(value));
    return value;
}

// The lanes 0 of all warps tell when they started and ended. A block works for `trips[block]` rounds.
extern "C" __global__ void scheduled(Seen *seen, const int *trips) {
    long long start = clock64();
    int rounds = trips[blockIdx.x];
#pragma unroll 1
    for (int k = 0; k < rounds; k++) asm volatile("bar.sync 0;" ::: "memory");
    long long end = clock64();
    int warps = (blockDim.x + 31) / 32;
    if (threadIdx.x % 32 == 0) seen[blockIdx.x * warps + threadIdx.x / 32] = {start, end, special(0), special(1)};
}

extern "C" __global__ void timers(long long *output) {
    unsigned long long time, again;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    long long cycle = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(again));
    output[0] = time;
    output[1] = cycle;
    output[2] = again;
    output[3] = clock();
}

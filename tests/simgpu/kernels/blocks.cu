// Barriers, and what blocks do together.
#include <cstdint>

extern "C" __global__ void counts(int *output, const int *input) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = input[i];
    int count = __syncthreads_count(x > 0), all = __syncthreads_and(x > -10), any = __syncthreads_or(x == 3);
    output[i] = count + 1000 * all + 2000 * any;
}

// Threads that have left do not hold up the others.
extern "C" __global__ void leave_early(int *output, int rounds) {
    __shared__ int shared[128];
    int i = threadIdx.x;
    shared[i] = i;
    for (int round = 0; round < rounds; round++) {
        __syncthreads();
        int value = shared[(i + 1) % blockDim.x];
        __syncthreads();
        shared[i] = value + 1;
        if (i == 3 * round + 40) return;
    }
    output[blockIdx.x * blockDim.x + i] = shared[i];
}

// Two halves of a block, each with a barrier of its own; a producer that arrives and does not wait.
extern "C" __global__ void named_barriers(int *output) {
    __shared__ int shared[128];
    int i = threadIdx.x, half = i / 64;
    for (int round = 0; round < 3 + half; round++) {
        shared[i] = i + round;
        asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
        output[i] = shared[half * 64 + (i + 32) % 64];
        asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
    }
    if (half == 0) {
        shared[i] = 7 * i;
        asm volatile("bar.arrive 5, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 5, 128;" ::: "memory");
        output[i] += shared[i - 64];
    }
}

// Half of the threads never come.
extern "C" __global__ void deadlock(int *output) {
    if (threadIdx.x < 16) asm volatile("bar.sync 1, 32;");
    if (threadIdx.x >= 16) asm volatile("bar.sync 2, 32;");
    output[threadIdx.x] = 1;
}

extern "C" __global__ void histogram(unsigned *bins, const uint8_t *data, int count) {
    __shared__ unsigned local[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) local[k] = 0;
    __syncthreads();
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x) atomicAdd(&local[data[k]], 1);
    __syncthreads();
    for (int k = threadIdx.x; k < 256; k += blockDim.x)
        if (local[k]) atomicAdd(&bins[k], local[k]);
}

// Every thread adds one under a lock: the winner of a warp must get on while the others spin.
extern "C" __global__ void locked(int *lock, volatile int *total) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *total = *total + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// Each block waits for the one before it, and blocks take their numbers as they come.
extern "C" __global__ void chained(volatile int *flags, int *output) {
    if (threadIdx.x == 0) {
        int before = 0;
        if (blockIdx.x > 0)
            while ((before = flags[blockIdx.x - 1]) == 0) {}
        output[blockIdx.x] = before;
        __threadfence();
        flags[blockIdx.x] = before + 1;
    }
}

__device__ float atomic_max(float *address, float value) {
    int *bits = (int *)address, old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}

extern "C" __global__ void atomic_operations(int *ints, unsigned *unsigneds, float *floats, unsigned long long *longs, double *doubles, const int *input, int *returned) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = input[i];
    atomicMin(&ints[0], x);
    atomicMax(&ints[1], x);
    returned[i] = atomicSub(&ints[2], 1);
    atomicAnd(&unsigneds[0], ~(1u << (i & 31)));
    atomicOr(&unsigneds[1], 1u << (i & 7));
    atomicXor(&unsigneds[2], x);
    atomicInc(&unsigneds[3], 5);
    atomicDec(&unsigneds[4], 6);
    atomicAdd(&floats[i & 3], 0.5f * x);
    atomic_max(&floats[4], x * 0.25f);
    atomicAdd(&longs[0], (unsigned long long)x * 1000000007ull);
    atomicAdd(&doubles[i & 1], 0.1 * x);
}

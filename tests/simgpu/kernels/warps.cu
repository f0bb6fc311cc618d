// Warp-level primitives.

constexpr unsigned ALL = 0xffffffff;

extern "C" __global__ void shuffles(int *output, const int *input) {
    int i = threadIdx.x, x = input[i], n = blockDim.x;
    output[i] = __shfl_sync(ALL, x, 5);
    output[n + i] = __shfl_up_sync(ALL, x, 3);
    output[2 * n + i] = __shfl_down_sync(ALL, x, 2, 8);
    output[3 * n + i] = __shfl_xor_sync(ALL, x, 9);
    output[4 * n + i] = __shfl_sync(ALL, x, x & 31);
    output[5 * n + i] = __shfl_sync(ALL, x, 9, 4);
}

extern "C" __global__ void votes(unsigned *output, const int *input) {
    int i = threadIdx.x, x = input[i], n = blockDim.x;
    output[i] = __ballot_sync(ALL, x > 3);
    output[n + i] = __any_sync(ALL, x == 7) + 2 * __all_sync(ALL, x < 100);
    output[2 * n + i] = __match_any_sync(ALL, x);
    int same;
    output[3 * n + i] = __match_all_sync(ALL, x >> 8, &same) + same;
    output[4 * n + i] = __reduce_add_sync(ALL, x) + __reduce_min_sync(ALL, (unsigned)x);
    output[5 * n + i] = __reduce_max_sync(ALL, x) ^ __reduce_xor_sync(ALL, x);
}

// Only the threads that take the branch vote, by masks that they agree on before.
extern "C" __global__ void partial(unsigned *output, const int *input) {
    int i = threadIdx.x, x = input[i];
    unsigned odd = __ballot_sync(ALL, x & 1);
    if (x & 1) {
        output[2 * i] = __ballot_sync(odd, x > 3);
        output[2 * i + 1] = __shfl_sync(odd, i, __ffs(odd) - 1);
    } else {
        output[2 * i] = __activemask();
        __syncwarp(~odd);
        output[2 * i + 1] = __reduce_add_sync(~odd, 1);
    }
}

// Lanes come to the shuffle after loops of different lengths.
extern "C" __global__ void after_loop(int *output, const int *trips) {
    int i = threadIdx.x, sum = 0;
    for (int k = 0; k < trips[i]; k++) sum += k * i;
    output[i] = __shfl_xor_sync(ALL, sum, 1);
}

// Both sides of a branch reach a barrier of the warp, each at its own place.
extern "C" __global__ void meet_in_branches(int *output) {
    __shared__ int shared[32];
    int i = threadIdx.x;
    if (i < 11) {
        shared[i] = i * 10;
        __syncwarp();
        output[i] = shared[31 - i];
    } else {
        shared[i] = i;
        __syncwarp();
        output[i] = shared[31 - i];
    }
}

// A stream compaction: the leader of each warp reserves room for all.
extern "C" __global__ void compact(int *output, unsigned *size, const int *input, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count || input[i] % 3) return;
    unsigned mask = __activemask(), lane = threadIdx.x % 32, start;
    int leader = __ffs(mask) - 1;
    if (lane == leader) start = atomicAdd(size, __popc(mask));
    start = __shfl_sync(mask, start, leader);
    output[start + __popc(mask & ((1u << lane) - 1))] = input[i];
}

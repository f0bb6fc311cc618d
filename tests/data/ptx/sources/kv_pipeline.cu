// A pipeline of attention without its arithmetic: in each round, warp 4 copies a tile of K and, after some rounds of
// work, one of V. Warps 0 to 3 wait for each of them. Two stages, so that there are four arrays of barriers.

#include <cstdint>

constexpr int CONSUMERS = 4, TILE = 32 * CONSUMERS, STAGES = 2;

__device__ inline uint32_t address(const void *shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

__device__ inline void wait_for(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(address(barrier)), "r"(parity) : "memory");
}

__device__ inline void arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

__device__ inline void copy(float *to, const float *from, uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "n"(4 * TILE)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     address(to)),
                 "l"(from), "n"(4 * TILE), "r"(address(barrier))
                 : "memory");
}

__device__ inline float work(float x, int rounds)
{
#pragma unroll 1
    for (int i = 0; i < rounds; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x)::"memory");
    return x;
}

struct Pipeline {
    float k[STAGES][TILE], v[STAGES][TILE];
    uint64_t full_k[STAGES], empty_k[STAGES], full_v[STAGES], empty_v[STAGES];
};

__device__ inline void run(float (*k)[TILE], float (*v)[TILE], uint64_t *full_k, uint64_t *empty_k, uint64_t *full_v,
                           uint64_t *empty_v, float *out, const float *keys, const float *values, int tiles,
                           int late_k, int late_v)
{
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            for (uint64_t *full : {&full_k[s], &full_v[s]})
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(full)) : "memory");
            for (uint64_t *empty : {&empty_k[s], &empty_v[s]})
                asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(empty)), "r"(TILE) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    float x = 0;
    if (threadIdx.x >= TILE) {
        if (threadIdx.x != TILE)
            return;
#pragma unroll 1
        for (int i = 0; i < tiles; ++i) {
            int s = i % STAGES, free = i / STAGES % 2 ^ 1;
            wait_for(&empty_k[s], free);
            x = work(x, late_k);
            copy(k[s], keys + i * TILE, &full_k[s]);
            wait_for(&empty_v[s], free);
            x = work(x, late_v);
            copy(v[s], values + i * TILE, &full_v[s]);
        }
        out[TILE] = x;
        return;
    }
#pragma unroll 1
    for (int i = 0; i < tiles; ++i) {
        int s = i % STAGES, full = i / STAGES % 2;
        wait_for(&full_k[s], full);
        x += k[s][threadIdx.x];
        x = x - work(0, 2);
        arrive(&empty_k[s]);
        wait_for(&full_v[s], full);
        x += v[s][threadIdx.x];
        x = x - work(0, 2);
        arrive(&empty_v[s]);
    }
    out[threadIdx.x] = x;
}

// Barriers in shared variables of their own.
extern "C" __global__ void static_barriers(float *out, const float *keys, const float *values, int tiles, int late_k,
                                           int late_v)
{
    __shared__ alignas(128) float k[STAGES][TILE], v[STAGES][TILE];
    __shared__ uint64_t full_k[STAGES], empty_k[STAGES], full_v[STAGES], empty_v[STAGES];
    run(k, v, full_k, empty_k, full_v, empty_v, out, keys, values, tiles, late_k, late_v);
}

// All in dynamic shared memory, as libraries do: barriers are bytes of one variable.
extern "C" __global__ void dynamic_barriers(float *out, const float *keys, const float *values, int tiles, int late_k,
                                            int late_v)
{
    extern __shared__ __align__(128) char memory[];
    Pipeline &own = *reinterpret_cast<Pipeline *>(memory);
    run(own.k, own.v, own.full_k, own.empty_k, own.full_v, own.empty_v, out, keys, values, tiles, late_k, late_v);
}

// Planted waits: the cause of each is known.
#include <cstdio>
#include <cstdint>
#include <cuda_pipeline.h>
#include <cuda/barrier>
#include <cooperative_groups.h>
#define CHECK(x) do { cudaError_t e = (x); if (e) { printf("%s: %s\n", #x, cudaGetErrorString(e)); return 1; } } while (0)
template <int W> __global__ void chase(const uint64_t *chain, float *out, int n, float a)
{
    const uint64_t *p = chain;
    float x = a;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        uint64_t next = __ldcg(p);
#pragma unroll
        for (int j = 0; j < W; j++)
            asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(a));
        p = (const uint64_t *)next;
    }
    out[threadIdx.x] = x + (float)(uintptr_t)p;
}
__device__ float work(float x, int k)
{
#pragma unroll 1
    for (int i = 0; i < k; i++)
#pragma unroll
        for (int j = 0; j < 16; j++)
            asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
    return x;
}
__global__ void late_barrier(float *out, int rounds, int late)
{
    float x = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
        if (threadIdx.x < 32) x = work(x, late);
        __syncthreads();
    }
    out[threadIdx.x] = x;
}
__global__ void copies(const float4 *in, float *out, int rounds, int early)
{
    __shared__ float4 tile[256];
    float x = 1;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
        __pipeline_memcpy_async(&tile[threadIdx.x], in + (i * 256 + threadIdx.x) % 65536, 16);
        __pipeline_commit();
        x = work(x, early);
        __pipeline_wait_prior(0);
        __syncthreads();
        x += tile[threadIdx.x ^ 1].x;
        __syncthreads();
    }
    out[threadIdx.x] = x;
}
// An iteration has ROUNDS rounds of three additions. The copy starts LATE rounds after its begin; at least six rounds
// follow, in which the address is computed and the registers of the address are read.
constexpr int ROUNDS = 14;
template <int K> __device__ __forceinline__ float additions(float x, float a)
{
#pragma unroll
    for (int j = 0; j < 3 * K; j++)
        asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(a));
    return x;
}
template <int LATE> __global__ void late_copy(const float4 *in, float *out, int rounds, float a)
{
    __shared__ float4 tile[32];
    float x = a;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
        x = additions<LATE>(x, a);
        const int after = x < 0; // keeps the copy behind the additions above
        __pipeline_memcpy_async(&tile[threadIdx.x], in + (i * 32 + threadIdx.x + after) % 65536, 16);
        __pipeline_commit();
        x = additions<ROUNDS - LATE>(x, a);
        __syncwarp(x < 0 ? 1 : ~0u); // keeps the wait behind the additions above
        __pipeline_wait_prior(0);
        x = tile[threadIdx.x ^ 1].x + a;
    }
    out[threadIdx.x] = x;
}
__global__ void late_mbarrier(float *out, int rounds, int late)
{
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ alignas(8) char storage[sizeof(barrier)];
    barrier *b = reinterpret_cast<barrier *>(storage);
    if (threadIdx.x == 0) init(b, 64);
    __syncthreads();
    float x = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
        if (threadIdx.x < 32) x = work(x, late);
        b->wait(b->arrive());
    }
    out[threadIdx.x] = x;
}
__global__ void __cluster_dims__(2) late_cluster(float *out, int rounds, int late)
{
    auto cluster = cooperative_groups::this_cluster();
    float x = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < rounds; i++) {
        if (cluster.block_rank() == 0) x = work(x, late);
        cluster.sync();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
__device__ void wait_for(uint32_t barrier, uint32_t phase)
{
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }"
                 ::"r"(barrier), "r"(phase) : "memory");
}
__device__ void arrive_at(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// In code for sm_90a only; a build may have code for sm_90, too.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SET_REGISTERS(how) asm volatile("setmaxnreg." how ";")
#else
#define SET_REGISTERS(how)
#endif
// Warps exchange registers: those of one warpgroup, which is late, give theirs to two others, which wait for it.
__global__ void __launch_bounds__(384, 1) late_producer(float *out, int rounds, int late)
{
    __shared__ alignas(8) uint64_t barriers[2];
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers), empty = full + 8;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(full) : "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 256;" ::"r"(empty) : "memory");
    }
    __syncthreads();
    float x = threadIdx.x;
    if (threadIdx.x < 128) {
        SET_REGISTERS("dec.sync.aligned.u32 24");
#pragma unroll 1
        for (int i = 0; i < rounds; i++) {
            wait_for(empty, (i + 1) & 1);
            x = work(x, late);
            arrive_at(full);
        }
    } else {
        SET_REGISTERS("inc.sync.aligned.u32 240");
#pragma unroll 1
        for (int i = 0; i < rounds; i++) {
            wait_for(full, i & 1);
            arrive_at(empty);
        }
    }
    out[threadIdx.x] = x;
}
__global__ void serial_sum(const float *in, float *out, int n)
{
    float s = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += __ldcg(in + i);
    out[threadIdx.x] = s;
}
// With an argument only what is late by 0, 2, 4 and 8 rounds.
int main(int arguments, char **)
{
    uint64_t *chain, *host = new uint64_t[1 << 17];
    float *out, *in;
    CHECK(cudaMalloc(&chain, 1 << 20)); CHECK(cudaMalloc(&out, 1 << 16)); CHECK(cudaMalloc(&in, 1 << 24));
    CHECK(cudaMemset(in, 0, 1 << 24));
    if (arguments > 1) {
        for (int k : {0, 2, 4, 8}) {
            late_barrier<<<1, 64>>>(out, 500, k); late_mbarrier<<<1, 64>>>(out, 500, k);
            late_producer<<<1, 384>>>(out, 500, k);
        }
        for (int r = 0; r < 2; r++) { // the first launches find nothing in the caches
            late_copy<0><<<1, 32>>>((float4 *)in, out, 1000, 1); late_copy<2><<<1, 32>>>((float4 *)in, out, 1000, 1);
            late_copy<4><<<1, 32>>>((float4 *)in, out, 1000, 1); late_copy<8><<<1, 32>>>((float4 *)in, out, 1000, 1);
        }
        CHECK(cudaDeviceSynchronize());
        return 0;
    }
    const int stride = (4096 + 128) / 8, count = (1 << 17) / stride;
    for (int i = 0; i < count; i++) host[i * stride] = (uint64_t)(chain + (i + 1) % count * stride);
    CHECK(cudaMemcpy(chain, host, 1 << 20, cudaMemcpyHostToDevice));
    for (int r = 0; r < 2; r++) {
        chase<0><<<1, 32>>>(chain, out, 1000, 1.0f); chase<16><<<1, 32>>>(chain, out, 1000, 1.0f);
        chase<32><<<1, 32>>>(chain, out, 1000, 1.0f); chase<48><<<1, 32>>>(chain, out, 1000, 1.0f);
        chase<96><<<1, 32>>>(chain, out, 1000, 1.0f);
    }
    for (int k = 0; k <= 16; k += 4) {
        late_barrier<<<1, 64>>>(out, 500, k); copies<<<1, 256>>>((float4 *)in, out, 500, k);
        late_mbarrier<<<1, 64>>>(out, 500, k);
        late_cluster<<<2, 64>>>(out, 500, k);
        late_producer<<<1, 384>>>(out, 500, k);
        CHECK(cudaDeviceSynchronize());
    }
    serial_sum<<<132, 256>>>(in, out, 1 << 20);
    CHECK(cudaDeviceSynchronize());
    float v[64]; CHECK(cudaMemcpy(v, out, sizeof v, cudaMemcpyDeviceToHost));
    double s = 0; for (float x : v) s += x; printf("sum %g\n", s);
    return 0;
}

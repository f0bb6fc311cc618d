// Waits for asynchronous work as libraries and programs write them: cuda::barrier, loops in inline assembly, groups of
// copies, and products that stay under way behind a wait.

#include <cstdint>
#include <cuda/barrier>
#include <cuda/ptx>

namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__device__ inline void wait_for(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\n"
                 "bra LAB_WAIT;\nDONE:\n}"
                 :: "r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier))), "r"(parity) : "memory");
}

// A bulk copy that all threads wait for, by the library: it tries once, then in a loop that sleeps longer and longer.
extern "C" __global__ void first_try(float *out, const float *in)
{
    __shared__ alignas(128) float tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof(tile),
                           cuda::device::barrier_native_handle(barrier));
        token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(tile));
    } else {
        token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    out[threadIdx.x] = 2 * tile[threadIdx.x];
}

// Warp 4 brings tiles of 128 floats and is slow; warps 0 to 3 add them up. Two buffers.
extern "C" __global__ void staged(float *out, const float *in, int tiles, int delay)
{
    __shared__ alignas(128) float tile[2][128];
    __shared__ uint64_t full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) {
            ptx::mbarrier_init(&full[s], 1);
            ptx::mbarrier_init(&empty[s], 128);
        }
    }
    __syncthreads();
    if (threadIdx.x == 128) {
#pragma unroll 1
        for (int i = 0; i < tiles; ++i) {
            int s = i & 1;
            wait_for(&empty[s], (i >> 1 & 1) ^ 1);
#pragma unroll 1
            for (int round = 0; round < delay; ++round)
                asm volatile("");
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s], 512);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile[s], in + i * 128, 512, &full[s]);
        }
    } else if (threadIdx.x < 128) {
        float sum = 0;
#pragma unroll 1
        for (int i = 0; i < tiles; ++i) {
            int s = i & 1;
            wait_for(&full[s], i >> 1 & 1);
            sum += tile[s][threadIdx.x];
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
                         :: "r"(static_cast<uint32_t>(__cvta_generic_to_shared(&empty[s]))) : "memory");
        }
        out[threadIdx.x] = sum;
    }
}

// Groups of copies into shared memory, and a bulk copy out of it.
extern "C" __global__ void groups(float *out, const float *in)
{
    __shared__ alignas(128) float tile[2][128];
    for (int s = 0; s < 2; ++s) {
        uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(&tile[s][4 * threadIdx.x]));
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(in + s * 128 + 4 * threadIdx.x));
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile[1], 512);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
    }
}

__device__ inline void multiply(float (&d)[4], uint64_t a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
}

// One product is always under way while the next one is issued.
extern "C" __global__ void __launch_bounds__(128) overlapped(float *out, uint64_t a, uint64_t b, int products)
{
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply(d, a, b);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll 1
    for (int i = 1; i < products; ++i) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply(d, a + i, b + i);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        __syncthreads();
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; ++i)
        out[4 * threadIdx.x + i] = d[i];
}

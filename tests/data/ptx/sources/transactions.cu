// sm_90a as libraries use it: warps that load for warps that multiply, tensor stores, clusters, asynchronous stores.
#include <cuda.h>
#include <cuda_bf16.h>

#include <cuda/barrier>
#include <cstdint>

__device__ __forceinline__ uint32_t shared_address(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void wait_for(uint32_t barrier, uint32_t phase) {
    asm volatile("{\n.reg .pred ready;\nagain:\nmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 ready, [%0], %1;\n"
                 "@!ready bra.uni again;\n}" :: "r"(barrier), "r"(phase) : "memory");
}

__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
    return (uint64_t(1) << 62) | (uint64_t(64) << 32) | (uint64_t(1) << 16) | ((address & 0x3FFFF) >> 4);
}

constexpr int STAGES = 4;

// One warp group fetches tiles with tensor copies, another multiplies them as they arrive.
extern "C" __global__ void __launch_bounds__(256, 1) __cluster_dims__(2, 1, 1)
producer_consumer(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                  const __grid_constant__ CUtensorMap c, int steps) {
    extern __shared__ __align__(1024) uint8_t memory[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    const uint32_t tiles = shared_address(memory), size = 64 * 64 * 2;
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" :: "l"(&a));
        for (int i = 0; i < STAGES; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(full + i)));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(empty + i)), "r"(2));
        }
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;");
    if (threadIdx.x >= 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        uint32_t elected;
        asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
        if (threadIdx.x / 32 == 4 && elected) {
            for (int step = 0; step < steps; ++step) {
                int stage = step % STAGES, phase = step / STAGES & 1;
                uint32_t barrier = shared_address(full + stage), tile = tiles + stage * 2 * size;
                wait_for(shared_address(empty + stage), phase ^ 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(2 * size));
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                             :: "r"(tile), "l"(&a), "r"(barrier), "r"(step * 64), "r"(blockIdx.y * 64) : "memory");
                asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
                             "[%0], [%1, {%3, %4}], [%2], %5, %6;"
                             :: "r"(tile + size), "l"(&b), "r"(barrier), "r"(step * 64), "r"(blockIdx.x * 64),
                                "h"(uint16_t(3)), "l"(0x14F0000000000000ull) : "memory");
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float d[8] = {};
        for (int step = 0; step < steps; ++step) {
            int stage = step % STAGES;
            uint32_t tile = tiles + stage * 2 * size;
            wait_for(shared_address(full + stage), step / STAGES & 1);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            for (int k = 0; k < 4; ++k)
                asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1, 0, 0;"
                             : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                             : "l"(descriptor(tile + k * 32)), "l"(descriptor(tile + size + k * 32)));
            asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
            uint32_t remote;
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(empty + stage)), "r"(step & 1));
            asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(remote) : "memory");
        }
        uint32_t place = tiles + threadIdx.x * 32;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(place), "r"(__float_as_uint(d[0])), "r"(__float_as_uint(d[1])), "r"(__float_as_uint(d[2])), "r"(__float_as_uint(d[3])));
        asm volatile("fence.proxy.async.shared::cta; bar.sync 1, 128;" ::: "memory");
        if (threadIdx.x == 0) {
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
                         :: "l"(&c), "r"(tiles), "r"(blockIdx.x * 64), "r"(blockIdx.y * 64) : "memory");
            asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], [%1];"
                         :: "l"(&c), "r"(tiles), "r"(0), "r"(0) : "memory");
            asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
        }
    }
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;");
}

// Stores into a neighbour's shared memory that complete on its barrier; a copy back that adds.
extern "C" __global__ void __cluster_dims__(4, 1, 1) ring(float *out, const float *in) {
    __shared__ __align__(128) float inbox[256];
    __shared__ uint64_t barrier;
    uint32_t rank, address, arrived;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(&barrier)));
        asm volatile("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [%0], 1024;" :: "r"(shared_address(&barrier)));
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(inbox + threadIdx.x)), "r"((rank + 1) % 4));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(arrived) : "r"(shared_address(&barrier)), "r"((rank + 1) % 4));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                 :: "r"(address), "r"(__float_as_uint(in[blockIdx.x * 256 + threadIdx.x])), "r"(arrived) : "memory");
    wait_for(shared_address(&barrier), 0);
    asm volatile("fence.proxy.async;" ::: "memory");
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 1024;"
                     :: "l"(out + blockIdx.x * 256), "r"(shared_address(inbox)) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
}

// The C++ library's way: a barrier in shared memory and copies that arrive on it.
extern "C" __global__ void library(double *out, const double *in, size_t count) {
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ __align__(16) double tile[512];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    for (size_t start = 0; start < count; start += 512) {
        cuda::memcpy_async(tile + threadIdx.x, in + start + threadIdx.x, sizeof(double), barrier);
        barrier.arrive_and_wait();
        out[start + threadIdx.x] = tile[511 - threadIdx.x];
        barrier.arrive_and_wait();
    }
}

// What sm_90a alone has: warp-group matrix products, bulk and tensor copies, transaction barriers.
#include <cstdint>

__device__ __forceinline__ uint32_t shared_address(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

extern "C" __global__ void __launch_bounds__(128) uses_wgmma(float *out, uint64_t a, uint64_t b) {
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b), "r"(1));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}

extern "C" __global__ void uses_tma(const __grid_constant__ int4 map, float *out, const float *in) {
    __shared__ __align__(128) float tile[1024];
    __shared__ uint64_t barrier;
    uint32_t b = shared_address(&barrier), t = shared_address(tile);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b));
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;");
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" :: "r"(b));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                     :: "r"(t), "l"(&map), "r"(b), "r"(0), "r"(16) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(t), "l"(in), "r"(1024), "r"(b) : "memory");
    }
    asm volatile("{ .reg .pred done;\nwaiting:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra ready;\n"
                 "bra waiting;\nready: }" :: "r"(b), "r"(0) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(out), "r"(t), "r"(512) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;");
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) uses_clusters(int *out) {
    __shared__ int mine;
    uint32_t remote, value;
    mine = out[threadIdx.x];
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;");
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(remote) : "r"(shared_address(&mine)));
    asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(value) : "r"(remote));
    out[threadIdx.x] = value;
}

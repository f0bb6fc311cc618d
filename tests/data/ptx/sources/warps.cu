// Warp-level operations, atomics, vector accesses, textures and surfaces.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

extern "C" __global__ void votes(unsigned *out, int value) {
    unsigned mask = __activemask();
    unsigned ballot = __ballot_sync(mask, value > int(threadIdx.x));
    unsigned same = __match_any_sync(mask, value & threadIdx.x);
    int all;
    unsigned equal = __match_all_sync(mask, value, &all);
    out[threadIdx.x] = ballot ^ same ^ equal ^ all ^ __any_sync(mask, value) ^ __all_sync(mask, value);
}

extern "C" __global__ void reduces(float *out, int *counts) {
    float x = out[threadIdx.x];
    for (int d = 16; d; d /= 2) x += __shfl_down_sync(~0u, x, d);
    x += __shfl_xor_sync(~0u, x, 1, 8) + __shfl_up_sync(~0u, x, 1);
    if (threadIdx.x % 32 == 0) atomicAdd(out, x);
    counts[threadIdx.x] = __reduce_add_sync(~0u, counts[threadIdx.x]) + __reduce_max_sync(~0u, counts[1]);
}

extern "C" __global__ void atomics(int *i, unsigned long long *l, float *f, double *d) {
    __shared__ int local;
    atomicExch(&local, 0);
    atomicCAS(i, 1, 2); atomicMax(i + 1, 3); atomicAnd(i + 2, 4); atomicInc((unsigned *)i + 3, 7);
    l[2] = atomicAdd(l, 1ull); atomicAdd(f, 1.0f); atomicAdd(d, 2.0); atomicSub(&local, 1);
    atomicAdd_system(i + 5, 1); atomicAdd_block(i + 6, 1);
    __threadfence(); __threadfence_system(); __threadfence_block();
}

extern "C" __global__ void vectors(float4 *a, const float4 *__restrict__ b, int2 *c, uchar4 *d) {
    float4 x = a[threadIdx.x], y = __ldg(b + threadIdx.x);
    a[threadIdx.x] = make_float4(x.x + y.x, x.y * y.y, fmaf(x.z, y.z, x.w), y.w);
    __stcs(c + threadIdx.x, make_int2(c[1].x, c[2].y));
    d[threadIdx.x] = make_uchar4(1, d[1].x, 3, d[2].w);
}

extern "C" __global__ void halves(__half2 *a, __nv_bfloat162 *b, __half *c) {
    a[threadIdx.x] = __hfma2(a[0], a[1], a[threadIdx.x]);
    b[threadIdx.x] = __hfma2(b[0], b[1], b[threadIdx.x]);
    c[threadIdx.x] = __float2half(__half2float(c[0]) * 2.0f + __half2float(hexp(c[1])));
}

extern "C" __global__ void textures(cudaTextureObject_t t, cudaSurfaceObject_t s, float4 *out) {
    float4 v = tex2D<float4>(t, threadIdx.x * 0.5f, threadIdx.y);
    v.x += tex1Dfetch<float>(t, threadIdx.x) + tex3DLod<float>(t, v.x, v.y, v.z, 1.0f);
    surf2Dwrite(v, s, threadIdx.x * 16, threadIdx.y);
    out[threadIdx.x] = v;
}

extern "C" __global__ void special(unsigned long long *out) {
    unsigned smid, laneid, lanes;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
    asm volatile("mov.u32 %0, %%laneid; mov.u32 %1, %%lanemask_lt;" : "=r"(laneid), "=r"(lanes));
    out[threadIdx.x] = clock64() + smid + laneid + lanes;
}

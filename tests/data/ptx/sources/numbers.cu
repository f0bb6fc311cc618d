// Number formats, matrix shapes, and what programs seldom use: surfaces, allocation, output, assertions, jump tables.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

#include <cassert>
#include <cstdint>
#include <cstdio>

extern "C" __global__ void bfloats(__nv_bfloat162 *y, const __nv_bfloat162 *x, float a, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = h2exp(__hmax2(__hfma2(__float2bfloat162_rn(a), x[i], y[i]), x[i]));
}

extern "C" __global__ void eights(__nv_fp8x4_e4m3 *packed, __nv_fp8_e5m2 *other, const float4 *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    packed[i] = __nv_fp8x4_e4m3(x[i]);
    other[i] = __nv_fp8_e5m2(float(__nv_fp8_e4m3(x[i].w)) * 0.5f);
}

extern "C" __global__ void bytes(int *out, const int *a, const int *b, const uint64_t *wide) {
    int i = threadIdx.x;
    int sum = __dp4a(a[i], b[i], out[i]) + __vabsdiffu4(a[i], b[i]) + __byte_perm(a[i], b[i], 0x5140);
    out[i] = sum + __popcll(wide[i]) + __clz(a[i]) + __ffsll(wide[i]) + __funnelshift_l(a[i], b[i], 7) + int(__umul64hi(wide[i], 3));
}

extern "C" __global__ void doubles(double *c, const double *a, const double *b) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 8, 8, 4, double, row_major> left;
    fragment<matrix_b, 8, 8, 4, double, col_major> right;
    fragment<accumulator, 8, 8, 4, double> sum;
    fill_fragment(sum, 0.0);
    for (int k = 0; k < 32; k += 4) {
        load_matrix_sync(left, a + k, 32);
        load_matrix_sync(right, b + k, 32);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(c, sum, 8, mem_row_major);
}

extern "C" __global__ void shapes(float *f, int *i, const uint32_t *in) {
    uint32_t a0 = in[0], a1 = in[1], a2 = in[2], a3 = in[3], b0 = in[4], b1 = in[5];
    float d[4] = {};
    int s[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    asm volatile("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(a0), "r"(a1), "r"(in[6]));
    for (int k = 0; k < 4; ++k) f[threadIdx.x * 4 + k] = d[k], i[threadIdx.x * 4 + k] = s[k];
}

extern "C" __global__ void surfaces(cudaSurfaceObject_t out, cudaTextureObject_t in, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    float4 texel = tex2D<float4>(in, x + 0.5f, y + 0.5f);
    float4 gathered = tex2Dgather<float4>(in, x, y, 1);
    float4 level = tex2DLayeredLod<float4>(in, x, y, 3, 1.5f);
    surf2Dwrite(make_float2(texel.x + gathered.y, level.z), out, x * sizeof(float2), y, cudaBoundaryModeClamp);
}

extern "C" __global__ void calls_the_system(int **out, int n) {
    assert(n > 0);
    int *memory = static_cast<int *>(malloc(n * sizeof(int)));
    if (!memory) __trap();
    memory[0] = threadIdx.x;
    if (threadIdx.x == 0) printf("block %d has %d at %p\n", blockIdx.x, n, memory);
    out[threadIdx.x] = memory;
    __nanosleep(100);
    if (n == 77) asm volatile("exit;");
    if (n == 78) free(memory);
}

extern "C" __global__ void jump(float *x, const int *which, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    switch (which[i]) {
        case 0: v = sinf(v); break;
        case 1: v = v * v * v; break;
        case 2: v = __expf(v); break;
        case 3: v = rsqrtf(v); break;
        case 4: x[i + n] = v; return;
        case 5: v = fmodf(v, 3.0f); break;
        case 6: v = __shfl_sync(__activemask(), v, 0); break;
        case 7: v = atomicExch(x + i, 0.0f); break;
        case 8: __syncwarp(__activemask()); v = v < 0 ? -1.0f : 1.0f; break;
        default: v = 0;
    }
    x[i] = v;
}

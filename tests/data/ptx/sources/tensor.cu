// Tensor cores and asynchronous copies of sm_80.
#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void uses_wmma(const half *a, const half *b, float *c, int ld) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    for (int k = 0; k < ld; k += 16) {
        wmma::load_matrix_sync(fa, a + k, ld);
        wmma::load_matrix_sync(fb, b + k, ld);
        wmma::mma_sync(acc, fa, fb, acc);
    }
    wmma::store_matrix_sync(c, acc, ld, wmma::mem_row_major);
}

extern "C" __global__ void uses_mma(const unsigned *a, const unsigned *b, float *c) {
    __shared__ __align__(16) unsigned tile[256];
    unsigned x[4], at = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x % 16 * 4));
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(at));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(b[0]), "r"(b[1]));
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(b[0]), "r"(b[1]));
    c[threadIdx.x] = x[0];
}

extern "C" __global__ void uses_cp_async(float4 *out, const float4 *in, int stages) {
    __shared__ float4 buffer[2][64];
    for (int i = 0; i < stages; ++i) {
        __pipeline_memcpy_async(&buffer[i & 1][threadIdx.x], in + i * 64 + threadIdx.x, 16);
        __pipeline_memcpy_async(&buffer[i & 1][threadIdx.x], in + threadIdx.x, 8, 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[i * 64 + threadIdx.x] = buffer[(i + 1) & 1][63 - threadIdx.x];
    }
}

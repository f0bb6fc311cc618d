// Tensor-core instructions, and copies into shared memory that do not wait.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// D = A B + C by mma.m16n8k16; the elements of each lane are placed as the PTX reference tells, one by one.
template <typename T>
__device__ uint32_t two(const T *matrix, int row, int column, int row_step, int column_step, int columns) {
    T low = matrix[row * columns + column], high = matrix[(row + row_step) * columns + column + column_step];
    uint16_t a, b;
    memcpy(&a, &low, 2);
    memcpy(&b, &high, 2);
    return a | (uint32_t)b << 16;
}

#define PRODUCT(NAME, T, TYPES)                                                                                        \
    extern "C" __global__ void NAME(float *d, const T *a, const T *b, const float *c) {                               \
        int lane = threadIdx.x % 32, group = lane >> 2, quad = lane % 4, tile = threadIdx.x / 32;                     \
        a += tile * 256, b += tile * 128, c += tile * 128, d += tile * 128;                                           \
        uint32_t a0 = two(a, group, quad * 2, 0, 1, 16), a1 = two(a, group + 8, quad * 2, 0, 1, 16);                  \
        uint32_t a2 = two(a, group, quad * 2 + 8, 0, 1, 16), a3 = two(a, group + 8, quad * 2 + 8, 0, 1, 16);          \
        uint32_t b0 = two(b, quad * 2, group, 1, 0, 8), b1 = two(b, quad * 2 + 8, group, 1, 0, 8);                    \
        float d0, d1, d2, d3;                                                                                          \
        asm volatile("mma.sync.aligned.m16n8k16.row.col." TYPES                                                       \
                     " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                                     \
                     : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)                                                         \
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(c[group * 8 + quad * 2]),            \
                       "f"(c[group * 8 + quad * 2 + 1]), "f"(c[(group + 8) * 8 + quad * 2]),                          \
                       "f"(c[(group + 8) * 8 + quad * 2 + 1]));                                                       \
        d[group * 8 + quad * 2] = d0, d[group * 8 + quad * 2 + 1] = d1;                                               \
        d[(group + 8) * 8 + quad * 2] = d2, d[(group + 8) * 8 + quad * 2 + 1] = d3;                                   \
    }
PRODUCT(product_half, __half, "f32.f16.f16.f32")
PRODUCT(product_brain, __nv_bfloat16, "f32.bf16.bf16.f32")

extern "C" __global__ void product_tf32(float *d, const uint32_t *a, const uint32_t *b) {
    int lane = threadIdx.x, group = lane >> 2, quad = lane % 4;
    float d0, d1, d2, d3;
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
        : "r"(a[group * 8 + quad]), "r"(a[(group + 8) * 8 + quad]), "r"(a[group * 8 + quad + 4]),
          "r"(a[(group + 8) * 8 + quad + 4]), "r"(b[quad * 8 + group]), "r"(b[(quad + 4) * 8 + group]), "f"(0.f));
    d[group * 8 + quad * 2] = d0, d[group * 8 + quad * 2 + 1] = d1;
    d[(group + 8) * 8 + quad * 2] = d2, d[(group + 8) * 8 + quad * 2 + 1] = d3;
}

__device__ uint32_t four(const int8_t *matrix, int row, int column, int row_step, int column_step, int columns) {
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) word |= (uint32_t)(uint8_t)matrix[(row + i * row_step) * columns + column + i * column_step] << 8 * i;
    return word;
}

extern "C" __global__ void product_bytes(int *d, const int8_t *a, const int8_t *b, const int *c) {
    int lane = threadIdx.x, group = lane >> 2, quad = lane % 4, d0, d1, d2, d3;
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=r"(d0), "=r"(d1), "=r"(d2), "=r"(d3)
        : "r"(four(a, group, quad * 4, 0, 1, 32)), "r"(four(a, group + 8, quad * 4, 0, 1, 32)),
          "r"(four(a, group, quad * 4 + 16, 0, 1, 32)), "r"(four(a, group + 8, quad * 4 + 16, 0, 1, 32)),
          "r"(four(b, quad * 4, group, 1, 0, 8)), "r"(four(b, quad * 4 + 16, group, 1, 0, 8)),
          "r"(c[group * 8 + quad * 2]), "r"(c[group * 8 + quad * 2 + 1]), "r"(c[(group + 8) * 8 + quad * 2]),
          "r"(c[(group + 8) * 8 + quad * 2 + 1]));
    d[group * 8 + quad * 2] = d0, d[group * 8 + quad * 2 + 1] = d1;
    d[(group + 8) * 8 + quad * 2] = d2, d[(group + 8) * 8 + quad * 2 + 1] = d3;
}

// A product as libraries make it: cp.async in two stages, ldmatrix, mma with half-precision sums.
extern "C" __global__ void pipeline(__half *d, const __half *a, const __half *b, int depth) {
    __shared__ __align__(16) __half tile_a[2][16][16], tile_b[2][16][8];
    int lane = threadIdx.x;
    auto fetch = [&](int stage, int k) {
        uint32_t to_a = __cvta_generic_to_shared(&tile_a[stage][lane / 2][lane % 2 * 8]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to_a), "l"(a + lane / 2 * depth + k + lane % 2 * 8));
        if (lane < 16) {
            uint32_t to_b = __cvta_generic_to_shared(&tile_b[stage][lane][0]);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to_b), "l"(b + (k + lane) * 8), "r"(k + lane < depth - 3 ? 16 : 6));
        }
        asm volatile("cp.async.commit_group;");
    };
    fetch(0, 0);
    uint32_t d0 = 0, d1 = 0;
    for (int k = 0; k < depth; k += 16) {
        int stage = k / 16 % 2;
        if (k + 16 < depth) fetch(1 - stage, k + 16);
        asm volatile("cp.async.wait_all;");
        __syncwarp();
        uint32_t a0, a1, a2, a3, b0, b1;
        uint32_t from_a = __cvta_generic_to_shared(&tile_a[stage][lane % 16][lane / 16 * 8]);
        uint32_t from_b = __cvta_generic_to_shared(&tile_b[stage][lane % 16][0]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(from_a));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(from_b));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                     : "+r"(d0), "+r"(d1) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
        __syncwarp();
    }
    memcpy(d + lane / 4 * 8 + lane % 4 * 2, &d0, 4);
    memcpy(d + (lane / 4 + 8) * 8 + lane % 4 * 2, &d1, 4);
}

extern "C" __global__ void fragments(float *d, const __half *a, const __half *b, const float *c, int size, float scale) {
    __shared__ float result[16 * 16];
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, add;
    wmma::fill_fragment(sum, 0.f);
    for (int k = 0; k < size; k += 16) {
        wmma::load_matrix_sync(left, a + row * size + k, size);
        wmma::load_matrix_sync(right, b + column * size + k, size);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::load_matrix_sync(add, c + row * size + column, size, wmma::mem_row_major);
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] = scale * sum.x[i] + add.x[i];
    wmma::store_matrix_sync(result, sum, 16, wmma::mem_col_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) d[(row + i / 16) * size + column + i % 16] = result[i % 16 * 16 + i / 16];
}

extern "C" __global__ void fragments_brain(float *d, const __nv_bfloat16 *a, const __nv_bfloat16 *b) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::col_major> left;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum;
    wmma::fill_fragment(sum, 1.f);
    wmma::load_matrix_sync(left, a, 32);
    wmma::load_matrix_sync(right, b, 8);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(d, sum, 8, wmma::mem_row_major);
}

extern "C" __global__ void fragments_double(double *d, const double *a, const double *b) {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
    wmma::load_matrix_sync(sum, d, 8, wmma::mem_row_major);
    wmma::load_matrix_sync(left, a, 4);
    wmma::load_matrix_sync(right, b, 8);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(d, sum, 8, wmma::mem_row_major);
}

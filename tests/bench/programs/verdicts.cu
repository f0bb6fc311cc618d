// Kernels of different kinds, each limited by something else: what tests/bench/verdicts.py holds verdicts against ncu with.
//
//     verdicts [ROUNDS]     launches all of them in order, so often (default 3)

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>
#include <cstdio>
#include <cstdlib>

namespace wmma = nvcuda::wmma;

static const size_t kFloats = size_t(1) << 26;   // 256 MiB per array
static const int kSide = 2048, kHead = 64, kLength = 2048, kTile = 32;

__global__ void copy(const float4 *in, float4 *out, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) out[i] = in[i];
}

// 4 of the 32 bytes of each sector are asked for.
__global__ void strided_copy(const float *in, float *out, size_t n) {
    size_t i = (blockIdx.x * size_t(blockDim.x) + threadIdx.x) * 8;
    if (i < n) out[i] = in[i];
}

__global__ void reduction(const float4 *in, float *out, size_t n) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        float4 v = in[i];
        sum += v.x + v.y + v.z + v.w;
    }
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

__global__ void tiled_product(const float *a, const float *b, float *c) {
    __shared__ float left[kTile][kTile], right[kTile][kTile];
    int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < kSide; k += kTile) {
        left[threadIdx.y][threadIdx.x] = a[row * kSide + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * kSide + column];
        __syncthreads();
        for (int i = 0; i < kTile; i++) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    c[row * kSide + column] = sum;
}

// Tiles of 128 x 128 by 8 warps, each 32 x 64; 32 deep through shared memory.
__global__ void tensor_product(const half *a, const half *b, float *c) {
    __shared__ half left[128][40], right[32][136];
    int warp = threadIdx.x / 32, y = warp / 2 * 32, x = warp % 2 * 64;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][4];
    for (auto &row : sums) for (auto &sum : row) wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < kSide; k += 32) {
        for (int i = threadIdx.x; i < 128 * 4; i += 256)
            *(float4 *)&left[i / 4][i % 4 * 8] = *(const float4 *)&a[(blockIdx.y * 128 + i / 4) * kSide + k + i % 4 * 8];
        for (int i = threadIdx.x; i < 32 * 16; i += 256)
            *(float4 *)&right[i / 16][i % 16 * 8] = *(const float4 *)&b[(k + i / 16) * kSide + blockIdx.x * 128 + i % 16 * 8];
        __syncthreads();
        for (int deep = 0; deep < 32; deep += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> rows[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> columns[4];
            for (int i = 0; i < 2; i++) wmma::load_matrix_sync(rows[i], &left[y + 16 * i][deep], 40);
            for (int i = 0; i < 4; i++) wmma::load_matrix_sync(columns[i], &right[deep][x + 16 * i], 136);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) wmma::mma_sync(sums[i][j], rows[i], columns[j], sums[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            wmma::store_matrix_sync(&c[(blockIdx.y * 128 + y + 16 * i) * kSide + blockIdx.x * 128 + x + 16 * j], sums[i][j],
                                    kSide, wmma::mem_row_major);
}

__global__ void tensor_loop(float *out, int rounds) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[4];
    wmma::fill_fragment(a, __float2half(0.5f));
    wmma::fill_fragment(b, __float2half(0.25f));
    for (auto &sum : sums) wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < rounds; i++)
        for (auto &sum : sums) wmma::mma_sync(sum, a, b, sum);
    for (int i = 1; i < 4; i++)
        for (int j = 0; j < sums[0].num_elements; j++) sums[0].x[j] += sums[i].x[j];
    wmma::store_matrix_sync(out + (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) % 64 * 256, sums[0], 16, wmma::mem_row_major);
}

// One thread per query, keys and values 32 at a time through shared memory, the softmax as it goes.
__global__ void attention(const float *q, const float *k, const float *v, float *o) {
    __shared__ float keys[32][kHead], values[32][kHead];
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float query[kHead], sum[kHead] = {}, most = -1e30f, whole = 0;
    for (int i = 0; i < kHead; i++) query[i] = q[row * kHead + i] * 0.125f;
    for (int from = 0; from < kLength; from += 32) {
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * kHead; i += blockDim.x) {
            keys[i / kHead][i % kHead] = k[from * kHead + i];
            values[i / kHead][i % kHead] = v[from * kHead + i];
        }
        __syncthreads();
        for (int j = 0; j < 32; j++) {
            float score = 0;
            for (int i = 0; i < kHead; i++) score += query[i] * keys[j][i];
            float larger = fmaxf(most, score), scale = __expf(most - larger), weight = __expf(score - larger);
            whole = whole * scale + weight;
            most = larger;
            for (int i = 0; i < kHead; i++) sum[i] = sum[i] * scale + weight * values[j][i];
        }
    }
    for (int i = 0; i < kHead; i++) o[row * kHead + i] = sum[i] / whole;
}

__global__ void scatter(const float *in, float *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[(i * 2654435761u) & (n - 1)] = in[i];
}

__global__ void tiny(float *out) { out[threadIdx.x] += 1; }

// Each load needs the one before it; one warp per SM, one lane of it.
__global__ void chain(const unsigned *next, unsigned *out, int steps) {
    unsigned at = blockIdx.x * 4099;
    for (int i = 0; i < steps; i++) at = next[at];
    out[blockIdx.x] = at;
}

template <typename T> __device__ void fused(T *out, int rounds, T one) {
    T sums[8];
    for (int i = 0; i < 8; i++) sums[i] = one * T(threadIdx.x + i);
    for (int i = 0; i < rounds; i++)
        for (int j = 0; j < 8; j++) sums[j] = sums[j] * one + one;
    T sum = sums[0];
    for (int i = 1; i < 8; i++) sum = sum + sums[i];
    out[(blockIdx.x * blockDim.x + threadIdx.x) % 4096] = sum;
}
__global__ void fp32_loop(float *out, int rounds, float one) { fused(out, rounds, one); }
__global__ void fp64_loop(double *out, int rounds, double one) { fused(out, rounds, one); }

__global__ void half_loop(half2 *out, int rounds, float one) {
    half2 sums[8], step = __float2half2_rn(one);
    for (int i = 0; i < 8; i++) sums[i] = __float2half2_rn(threadIdx.x + i);
    for (int i = 0; i < rounds; i++)
        for (int j = 0; j < 8; j++) sums[j] = __hfma2(sums[j], step, step);
    for (int i = 1; i < 8; i++) sums[0] = __hadd2(sums[0], sums[i]);
    out[(blockIdx.x * blockDim.x + threadIdx.x) % 4096] = sums[0];
}

// Each lane of a warp runs for another time.
__global__ void divergent(float *out, int rounds, float one) {
    float sum = threadIdx.x;
    int mine = rounds * (threadIdx.x % 32 + 1) / 32;
    for (int i = 0; i < mine; i++) {
        if ((i ^ threadIdx.x) & 1) sum = sum * one + one;
        else sum = sqrtf(sum + one);
    }
    out[(blockIdx.x * blockDim.x + threadIdx.x) % 4096] = sum;
}

__global__ void persistent(const float4 *in, float4 *out, size_t n, float one) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        float4 v = in[i];
        out[i] = make_float4(v.x * one + one, v.y * one + one, v.z * one + one, v.w * one + one);
    }
}

__global__ void shared_loop(float *out, int rounds) {
    __shared__ float row[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) row[i] = i;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < rounds; i++) sum += row[(threadIdx.x + 32 * i) & 1023] + row[(threadIdx.x + 32 * i + 512) & 1023];
    out[(blockIdx.x * blockDim.x + threadIdx.x) % 4096] = sum;
}

// 16 MiB, which stay in the L2 cache, again and again, past the L1 cache.
__global__ void l2_read(const float4 *in, float *out, unsigned n, int rounds) {
    float sum = 0;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; round++) {
        float4 v = __ldcg(&in[(i + round * 65599u) & (n - 1)]);
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == -1) out[0] = sum;
}

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        fprintf(stderr, "verdicts: %s\n", cudaGetErrorString(error));
        exit(1);
    }
}

static float *array(size_t bytes) {
    void *address;
    check(cudaMalloc(&address, bytes));
    check(cudaMemset(address, 0, bytes));
    return (float *)address;
}

int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 3, sms;
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    float *in = array(4 * kFloats), *out = array(4 * kFloats), *few = array(1 << 20), *small = array(16 << 20);
    size_t side = size_t(kSide) * kSide * 4, rows = size_t(64) * kLength * kHead * 4;
    float *a = array(side), *b = array(side), *c = array(side), *q = array(rows), *o = array(rows);
    for (int i = 0; i < rounds; i++) {
        copy<<<kFloats / 4 / 256, 256>>>((float4 *)in, (float4 *)out, kFloats / 4);
        strided_copy<<<kFloats / 8 / 256, 256>>>(in, out, kFloats);
        reduction<<<sms * 8, 256>>>((float4 *)in, few, kFloats / 4);
        tiled_product<<<dim3(kSide / kTile, kSide / kTile), dim3(kTile, kTile)>>>(a, b, c);
        tensor_product<<<dim3(kSide / 128, kSide / 128), 256>>>((half *)a, (half *)b, c);
        tensor_loop<<<sms * 4, 256>>>(few, 4096);
        attention<<<64 * kLength / 128, 128>>>(q, a, b, o);
        scatter<<<kFloats / 256, 256>>>(in, out, kFloats);
        tiny<<<1, 32>>>(few);
        chain<<<sms, 1>>>((unsigned *)in, (unsigned *)few, 2000);
        fp32_loop<<<sms * 8, 256>>>(few, 8192, 0.5f);
        fp64_loop<<<sms * 8, 256>>>((double *)few, 4096, 0.5);
        half_loop<<<sms * 8, 256>>>((half2 *)few, 8192, 0.5f);
        divergent<<<sms * 8, 256>>>(few, 4096, 0.5f);
        persistent<<<sms * 2, 1024>>>((float4 *)in, (float4 *)out, kFloats / 4, 0.5f);
        shared_loop<<<sms * 8, 256>>>(few, 4096);
        l2_read<<<sms * 8, 256>>>((float4 *)small, few, 1 << 20, 512);
    }
    check(cudaDeviceSynchronize());
    check(cudaGetLastError());
    puts("verdicts ok");
    return 0;
}

// Kernels whose time is that of memory, with the access patterns that a probe of sectors meets.
#include <cstdio>
#include <cuda_runtime.h>
constexpr int N = 1 << 24;
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
#define KERNEL(name) extern "C" __global__ void name(const float *from, float *to, const int *order)
#define QUADS(p) reinterpret_cast<float4 *>(p)
#define CQUADS(p) reinterpret_cast<const float4 *>(p)
KERNEL(copy_words) { to[INDEX] = from[INDEX]; }
#define SPREAD (INDEX / 4 % (N / 16) + INDEX % 4 * (N / 16))
KERNEL(copy_quads) { QUADS(to)[SPREAD] = CQUADS(from)[SPREAD]; }
KERNEL(copy_quads_rows) { if (INDEX < N / 4) QUADS(to)[INDEX] = CQUADS(from)[INDEX]; }
KERNEL(copy_offset) { if (INDEX + 3 < N) to[INDEX + 3] = from[INDEX + 1]; }
KERNEL(pool_pairs) { if (INDEX < N / 2) to[INDEX] = from[2 * INDEX] + from[2 * INDEX + 1]; }
KERNEL(tiles) { int lane = threadIdx.x % 32, warp = INDEX / 32; if (warp < N / 128) QUADS(to)[warp * 32 + lane] = CQUADS(from)[(warp / 8 * 256 + warp % 8 * 8 + lane / 8 * 64 + lane % 8)]; }
KERNEL(broadcast) { to[INDEX] = from[INDEX / 32]; }
KERNEL(reversed) { to[INDEX] = from[N - 1 - INDEX]; }
KERNEL(gather) { to[INDEX] = from[order[INDEX]]; }
KERNEL(odd_lanes) { if (threadIdx.x % 2) to[INDEX] = from[INDEX]; }
KERNEL(loop_sum) { float sum = 0; for (int i = INDEX; i < N; i += gridDim.x * blockDim.x) sum += from[i]; to[INDEX] = sum; }
KERNEL(product) {
    int column = INDEX % 1024, row = INDEX / 1024 % 1024; float sum = 0;
    if (INDEX < 1 << 20) { for (int k = 0; k < 256; k++) sum += from[row * 1024 + k] * from[k * 1024 + column]; to[INDEX] = sum; }
}
int main() {
    float *from, *to; int *order, *host = new int[N];
    for (int i = 0; i < N; i++) host[i] = (int)((unsigned)i * 2654435761u % N);
    cudaMalloc(&from, N * 4); cudaMalloc(&to, N * 4); cudaMalloc(&order, N * 4);
    cudaMemset(from, 0, N * 4); cudaMemcpy(order, host, N * 4, cudaMemcpyHostToDevice);
    for (int round = 0; round < 4; round++) {
#define RUN(name) name<<<N / 256, 256>>>(from, to, order);
        RUN(copy_words) RUN(copy_quads) RUN(copy_quads_rows) RUN(copy_offset) RUN(pool_pairs) RUN(tiles) RUN(broadcast)
        RUN(reversed) RUN(gather) RUN(odd_lanes) RUN(product)
        loop_sum<<<528, 256>>>(from, to, order);
    }
    cudaError_t error = cudaDeviceSynchronize();
    puts(cudaGetErrorString(error));
    return error != cudaSuccess;
}

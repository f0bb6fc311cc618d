// A kernel for each way in which the lanes of a warp can share memory, launched once each.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int BLOCKS = 32, THREADS = 256, COUNT = BLOCKS * THREADS;

__device__ int index_of_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ unsigned scattered(unsigned i) { return (i * 2654435761u >> 8) % COUNT; }

#define KERNEL(name) extern "C" __global__ void name(char *memory, int count)
#define FLOATS reinterpret_cast<float *>(memory)

KERNEL(coalesced_store) { FLOATS[index_of_thread()] = 1; }
KERNEL(strided_store) { FLOATS[index_of_thread() * 2] = 1; }
KERNEL(byte_copy) { memory[COUNT * 4 + index_of_thread()] = memory[index_of_thread()]; }
KERNEL(half_copy) {
    short *halves = reinterpret_cast<short *>(memory);
    halves[COUNT * 4 + index_of_thread()] = halves[index_of_thread()];
}
KERNEL(pair_copy) {
    float2 *pairs = reinterpret_cast<float2 *>(memory);
    pairs[COUNT * 2 + index_of_thread()] = pairs[index_of_thread()];
}
KERNEL(quad_copy) {
    float4 *quads = reinterpret_cast<float4 *>(memory);
    quads[COUNT + index_of_thread()] = quads[index_of_thread()];
}
KERNEL(quad_strided_copy) {
    float4 *quads = reinterpret_cast<float4 *>(memory);
    quads[COUNT * 2 + index_of_thread() * 3] = quads[index_of_thread() * 2];
}
KERNEL(quads_shared_by_eight_apart) {
    float4 *quads = reinterpret_cast<float4 *>(memory);
    int lane = threadIdx.x % 32;
    quads[COUNT + index_of_thread()] = quads[index_of_thread() / 32 * 8 + lane % 8];
}
KERNEL(pairs_shared_by_sixteen_apart) {
    float2 *pairs = reinterpret_cast<float2 *>(memory);
    int lane = threadIdx.x % 32;
    pairs[COUNT + index_of_thread()] = pairs[index_of_thread() / 32 * 16 + lane % 16];
}
KERNEL(offset_by_one) { FLOATS[COUNT * 2 + index_of_thread() + 3] = FLOATS[index_of_thread() + 1]; }
KERNEL(reversed) { FLOATS[COUNT * 2 + index_of_thread()] = FLOATS[COUNT - 1 - index_of_thread()]; }
KERNEL(broadcast) { FLOATS[COUNT + index_of_thread()] = FLOATS[blockIdx.x * 100 + threadIdx.x / 32]; }
KERNEL(gather) { FLOATS[COUNT * 2 + index_of_thread()] = FLOATS[scattered(index_of_thread())]; }
KERNEL(scatter) { FLOATS[scattered(index_of_thread())] = 1; }
KERNEL(quad_gather) {
    float4 *quads = reinterpret_cast<float4 *>(memory);
    quads[COUNT * 2 + index_of_thread()] = quads[scattered(index_of_thread()) / 3];
}
KERNEL(columns) {
    int row = index_of_thread() % 128, column = index_of_thread() / 128;
    FLOATS[COUNT * 2 + index_of_thread()] = FLOATS[row * 64 + column];
}
KERNEL(tail) {
    if (index_of_thread() < count) FLOATS[COUNT + index_of_thread()] = FLOATS[index_of_thread()];
}
KERNEL(odd_lanes) {
    if (threadIdx.x % 2) FLOATS[COUNT + index_of_thread()] = FLOATS[index_of_thread()];
}
KERNEL(predicated) {
    asm volatile("{ .reg .pred p; .reg .b32 r; setp.lt.u32 p, %1, 11;\n"
                 "@p ld.global.b32 r, [%0];\n@p st.global.b32 [%0], r; }"
                 ::"l"(FLOATS + index_of_thread() * 3), "r"(threadIdx.x % 32) : "memory");
}
KERNEL(loop_of_lanes) {
    float sum = 0;
    for (int i = threadIdx.x % 32; i < 50; i += 7) sum += FLOATS[blockIdx.x * 64 + i];
    FLOATS[COUNT + index_of_thread()] = sum;
}
KERNEL(structures) {
    struct Three { float x, y, z; };
    Three *threes = reinterpret_cast<Three *>(memory);
    Three value = threes[index_of_thread()];
    FLOATS[COUNT * 4 + index_of_thread()] = value.x + value.y + value.z;
}
KERNEL(generic_copy) {
    asm volatile("{ .reg .b32 r;\n ld.b32 r, [%0];\n st.b32 [%0], r; }" ::"l"(FLOATS + index_of_thread()) : "memory");
}
KERNEL(atomics) {
    atomicAdd(FLOATS + threadIdx.x, 1.0f);
    FLOATS[COUNT + index_of_thread()] = 1;
}

#define RUN(name) name<<<BLOCKS, THREADS>>>(memory, COUNT - 1000)

int main() {
    char *memory;
    if (cudaMalloc(&memory, COUNT * 128) || cudaMemset(memory, 0, COUNT * 128)) return 1;
    RUN(coalesced_store), RUN(strided_store), RUN(byte_copy), RUN(half_copy), RUN(pair_copy), RUN(quad_copy);
    RUN(quad_strided_copy), RUN(quads_shared_by_eight_apart), RUN(pairs_shared_by_sixteen_apart), RUN(offset_by_one);
    RUN(reversed), RUN(broadcast), RUN(gather), RUN(scatter), RUN(quad_gather), RUN(columns), RUN(tail), RUN(odd_lanes);
    RUN(predicated), RUN(loop_of_lanes), RUN(structures), RUN(generic_copy), RUN(atomics);
    cudaError_t error = cudaDeviceSynchronize();
    std::printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}

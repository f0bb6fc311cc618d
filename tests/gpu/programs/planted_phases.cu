/* A pipeline whose phases are known: a producer warp that is late by some rounds of work, and consumers.

   planted_phases FILE launches it once for each delay, prints the sum of all outputs, the same on every run, and writes
   to FILE the clocks that the kernel reads itself: u32 [delay][warp][tile][boundary]. Phases are the lines between
   comments. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int CONSUMERS = 4, WARPS = CONSUMERS + 1, TILE = 32 * CONSUMERS, BUFFERS = 2, TILES = 64, CLOCKS = 3;
constexpr int DELAYS[] = {20, 40, 60, 80, 100};

__device__ uint32_t address(const void *shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

__device__ __forceinline__ uint32_t now()
{
    uint32_t clock;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(clock)::"memory");
    return clock;
}

__device__ __forceinline__ void wait_for(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(address(barrier)), "r"(parity) : "memory");
}

__device__ __forceinline__ float work(float x, int rounds)
{
#pragma unroll 1
    for (int i = 0; i < rounds; i++)
#pragma unroll
        for (int j = 0; j < 16; j++)
            asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x)::"memory");
    return x;
}

__global__ void planted_phases(float *sums, uint32_t *clocks, const float *tiles, int late)
{
    __shared__ alignas(128) float tile[BUFFERS][TILE];
    __shared__ uint64_t full[BUFFERS], empty[BUFFERS];
    if (threadIdx.x == 0) {
        for (int b = 0; b < BUFFERS; ++b) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[b])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(&empty[b])), "r"(TILE) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    clocks += threadIdx.x / 32 * TILES * CLOCKS;
    float x = 0;
    if (threadIdx.x >= TILE) {
        if (threadIdx.x != TILE)
            return;
#pragma unroll 1
        for (int i = 0; i < TILES; ++i) {
            // empty
            uint32_t waits = now();
            int b = i % BUFFERS;
            wait_for(&empty[b], i / BUFFERS % 2 ^ 1);
            // late
            uint32_t works = now();
            x = work(x, late);
            // copy
            uint32_t issues = now();
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full[b])),
                         "n"(4 * TILE) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             address(tile[b])),
                         "l"(tiles + i * TILE), "n"(4 * TILE), "r"(address(&full[b])) : "memory");
            clocks[i * CLOCKS] = waits;
            clocks[i * CLOCKS + 1] = works;
            clocks[i * CLOCKS + 2] = issues;
            // end
        }
        sums[TILE] = x;
        return;
    }
#pragma unroll 1
    for (int i = 0; i < TILES; ++i) {
        // full
        uint32_t waits = now();
        int b = i % BUFFERS;
        wait_for(&full[b], i / BUFFERS % 2);
        // compute
        uint32_t computes = now();
        x += tile[b][threadIdx.x];
        x = x - work(0, 4);
        // release
        uint32_t releases = now();
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&empty[b])) : "memory");
        clocks[i * CLOCKS] = waits;
        clocks[i * CLOCKS + 1] = computes;
        clocks[i * CLOCKS + 2] = releases;
        // end
    }
    sums[threadIdx.x] = x;
}

#define CHECK(call)                                                                            \
    do {                                                                                       \
        cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) {                                                            \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                     \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    std::vector<float> values(TILES * TILE), found(TILE + 1);
    std::vector<uint32_t> read(WARPS * TILES * CLOCKS);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i % 13);
    float *tiles, *sums;
    uint32_t *clocks;
    CHECK(cudaMalloc(&tiles, values.size() * sizeof(float)));
    CHECK(cudaMalloc(&sums, found.size() * sizeof(float)));
    CHECK(cudaMalloc(&clocks, read.size() * sizeof(uint32_t)));
    CHECK(cudaMemcpy(tiles, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    FILE *file = fopen(arguments[1], "wb");
    if (file == nullptr)
        return 3;
    double sum = 0;
    for (int late : DELAYS) {
        planted_phases<<<1, TILE + 32>>>(sums, clocks, tiles, late);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(found.data(), sums, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(read.data(), clocks, read.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));
        for (float each : found)
            sum += each;
        fwrite(read.data(), sizeof(uint32_t), read.size(), file);
    }
    printf("%d tiles, sum %.0f\n", TILES, sum);
    return fclose(file);
}

/* A producer warp that is slow on purpose, and consumers that wait for its tiles at mbarriers.

   slow_producer CYCLES FILE prints the sum of all tiles, the same on every run, and writes to FILE how often consumer
   warps waited and for how many cycles, as they measured it themselves. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int CONSUMERS = 4, TILE = 32 * CONSUMERS, BUFFERS = 2, TILES = 50, BLOCKS = 8;

__device__ uint32_t address(const void *shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

__device__ void wait_for(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(address(barrier)), "r"(parity) : "memory");
}

__global__ void slow_producer(float *sums, unsigned long long *waited, const float *tiles, long long cycles)
{
    __shared__ alignas(128) float tile[BUFFERS][TILE];
    __shared__ uint64_t full[BUFFERS], empty[BUFFERS];
    tiles += blockIdx.x * TILES * TILE;
    if (threadIdx.x == 0) {
        for (int b = 0; b < BUFFERS; ++b) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[b])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(&empty[b])), "r"(TILE) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= TILE) {
        if (threadIdx.x != TILE)
            return;
#pragma unroll 1
        for (int i = 0; i < TILES; ++i) {
            int b = i % BUFFERS;
            wait_for(&empty[b], i / BUFFERS % 2 ^ 1);
            for (long long begin = clock64(); clock64() - begin < cycles;)
                ;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full[b])),
                         "n"(4 * TILE) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             address(tile[b])),
                         "l"(tiles + i * TILE), "n"(4 * TILE), "r"(address(&full[b])) : "memory");
        }
        return;
    }
    float sum = 0;
    long long own = 0;
#pragma unroll 1
    for (int i = 0; i < TILES; ++i) {
        int b = i % BUFFERS;
        long long begin = clock64();
        wait_for(&full[b], i / BUFFERS % 2);
        own += clock64() - begin;
        sum += tile[b][threadIdx.x];
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&empty[b])) : "memory");
    }
    sums[blockIdx.x * TILE + threadIdx.x] = sum;
    if (threadIdx.x % 32 == 0)
        atomicAdd(waited, static_cast<unsigned long long>(own));
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
    if (count != 3)
        return 2;
    std::vector<float> values(BLOCKS * TILES * TILE), found(BLOCKS * TILE);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i % 13);
    float *tiles, *sums;
    unsigned long long *waited, cycles;
    CHECK(cudaMalloc(&tiles, values.size() * sizeof(float)));
    CHECK(cudaMalloc(&sums, found.size() * sizeof(float)));
    CHECK(cudaMalloc(&waited, sizeof *waited));
    CHECK(cudaMemset(waited, 0, sizeof *waited));
    CHECK(cudaMemcpy(tiles, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    slow_producer<<<BLOCKS, TILE + 32>>>(sums, waited, tiles, atoll(arguments[1]));
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found.data(), sums, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&cycles, waited, sizeof cycles, cudaMemcpyDeviceToHost));
    double sum = 0;
    for (float each : found)
        sum += each;
    printf("%d tiles, sum %.0f\n", BLOCKS * TILES, sum);
    FILE *file = fopen(arguments[2], "w");
    if (file == nullptr)
        return 3;
    fprintf(file, "%d %llu\n", BLOCKS * TILES * CONSUMERS, cycles);
    return fclose(file);
}

/* A pipeline whose producer warp computes for each tile which row to copy, longer than the consumers need for it. */
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int CONSUMERS = 4, ROW = 32 * CONSUMERS, STAGES = 3, TILES = 96, BLOCKS = 132, ROUNDS = 120, DEPTH = 6;
constexpr uint32_t TABLE_ROWS = 4096;

__device__ uint32_t address(const void *shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

__device__ __forceinline__ void wait_for(uint64_t *barrier, uint32_t parity)
{
    asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(address(barrier)), "r"(parity) : "memory");
}

__device__ uint32_t scramble(uint32_t key)
{
#pragma unroll 1
    for (int i = 0; i < ROUNDS; i++)
        key = (key * 1664525u + 1013904223u) ^ (key >> 7); // looks up
    return key;
}

__global__ void late_lookup(float *sums, const float *table, const uint32_t *keys)
{
    __shared__ alignas(128) float tile[STAGES][ROW];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[stage])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(&empty[stage])), "r"(ROW) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= ROW) {
        if (threadIdx.x > ROW)
            return;
#pragma unroll 1
        for (int i = 0; i < TILES; ++i) {
            const int stage = i % STAGES;
            wait_for(&empty[stage], i / STAGES % 2 ^ 1);
            const uint32_t row = scramble(keys[blockIdx.x * TILES + i]) % TABLE_ROWS;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full[stage])),
                         "n"(4 * ROW) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                         "r"(address(tile[stage])), "l"(table + row * ROW), "n"(4 * ROW), "r"(address(&full[stage]))
                         : "memory");
        }
        return;
    }
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < TILES; ++i) {
        const int stage = i % STAGES;
        wait_for(&full[stage], i / STAGES % 2);
        float value = tile[stage][threadIdx.x];
#pragma unroll 1
        for (int j = 0; j < DEPTH; j++)
#pragma unroll
            for (int k = 0; k < 16; k++)
                value = value * value + 0.25f;
        sum += value;
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&empty[stage])) : "memory");
    }
    sums[blockIdx.x * ROW + threadIdx.x] = sum;
}

int main()
{
    std::vector<float> host(TABLE_ROWS * ROW, 0.1f), results(BLOCKS * ROW);
    float *table, *sums;
    uint32_t *keys;
    cudaMalloc(&table, host.size() * 4);
    cudaMalloc(&sums, results.size() * 4);
    cudaMalloc(&keys, BLOCKS * TILES * 4);
    cudaMemcpy(table, host.data(), host.size() * 4, cudaMemcpyHostToDevice);
    cudaMemset(keys, 7, BLOCKS * TILES * 4);
    for (int launch = 0; launch < 3; launch++)
        late_lookup<<<BLOCKS, ROW + 32>>>(sums, table, keys);
    cudaMemcpy(results.data(), sums, results.size() * 4, cudaMemcpyDeviceToHost);
    double total = 0;
    for (float sum : results)
        total += sum;
    printf("%.3f %s\n", total, cudaGetErrorString(cudaDeviceSynchronize()));
}

/* Bulk copies whose bytes are known on paper: by a predicate in one lane, by each lane of a warp, to global memory, and a
   prefetch. Prints the sum of what was copied. */
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int BLOCKS = 4, BYTES = 1024, LANE_BYTES = 16, STORED = 256, INPUT = 8192;

__device__ uint32_t address(const void *shared)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

__global__ void bulk_forms(unsigned char *out, const unsigned char *in, uint32_t size)
{
    __shared__ alignas(128) unsigned char buffer[2048];
    __shared__ uint64_t barrier;
    uint32_t lane = threadIdx.x, arrived = 0;
    if (lane == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&barrier)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&barrier)),
                     "r"(size + 32 * LANE_BYTES) : "memory");
    }
    __syncwarp();
    asm volatile("{ .reg .pred first; setp.eq.u32 first, %4, 0;\n"
                 "@first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3]; }" ::"r"(
                     address(buffer)),
                 "l"(in), "r"(size), "r"(address(&barrier)), "r"(lane) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];" ::"r"(
                     address(buffer) + BYTES + LANE_BYTES * lane),
                 "l"(in + 4096 + LANE_BYTES * lane), "r"(address(&barrier)) : "memory");
    while (!arrived)
        asm volatile("{ .reg .pred done; mbarrier.try_wait.parity.shared::cta.b64 done, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, done; }" : "=r"(arrived) : "r"(address(&barrier)) : "memory");
    if (lane == 0) {
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], 128;" ::"l"(in) : "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out + blockIdx.x * 2 * STORED),
                     "r"(address(buffer)) : "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(
                         out + blockIdx.x * 2 * STORED + STORED),
                     "r"(address(buffer) + BYTES) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

int main()
{
    std::vector<unsigned char> values(INPUT), found(BLOCKS * 2 * STORED);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<unsigned char>(i * 7 + i / 256);
    unsigned char *in, *out;
    if (cudaMalloc(&in, values.size()) || cudaMalloc(&out, found.size()))
        return 1;
    cudaMemcpy(in, values.data(), values.size(), cudaMemcpyHostToDevice);
    for (int launch = 0; launch < 3; ++launch)  // in SASS mode each launch has one probe
        bulk_forms<<<BLOCKS, 32>>>(out, in, BYTES);
    if (cudaError_t error = cudaDeviceSynchronize()) {
        fprintf(stderr, "%s\n", cudaGetErrorString(error));
        return 1;
    }
    cudaMemcpy(found.data(), out, found.size(), cudaMemcpyDeviceToHost);
    unsigned sum = 0;
    for (unsigned char each : found)
        sum = sum * 31 + each;
    printf("%u\n", sum);
    return 0;
}

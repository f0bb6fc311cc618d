// Kernels of every kind that a probe in machine code could break, in an order that shows it. Prints what they computed.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>

namespace cg = cooperative_groups;

__device__ unsigned total;                 // one of the module, which the program reads
static __device__ unsigned hidden;         // of this file alone
__managed__ unsigned managed;
__constant__ unsigned table[8];
__device__ unsigned (*chosen)(unsigned);   // the address of a function

#define CHECK(call)                                                                      \
    do {                                                                                 \
        cudaError_t error = (call);                                                      \
        if (error != cudaSuccess) {                                                      \
            printf("%s: %s\n", #call, cudaGetErrorString(error));                        \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

__device__ __noinline__ unsigned twice(unsigned x) { return 2 * x; }

__device__ __noinline__ unsigned thrice(unsigned x) { return 3 * x; }

__device__ unsigned (*steps[2])(unsigned) = {twice, thrice};   // addresses that the loader writes

__global__ void by_table(unsigned *out) { out[threadIdx.x] = steps[threadIdx.x / 32 % 2](threadIdx.x) + hidden; }

__global__ void choose() { chosen = twice; }

__global__ void count(unsigned *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return; // some lanes leave early
    unsigned sum = 0;
    for (unsigned j = 0; j <= i % 17; j++) sum += table[(i + j) % 8] * (j + 1);
    out[i] = sum;
    atomicAdd(&total, sum);
    atomicAdd(&hidden, 1u);
    if (i == 0) managed += 1;
}

__global__ void call(unsigned *out) { out[threadIdx.x] = chosen(threadIdx.x) + hidden; }

__global__ void look(cudaTextureObject_t texture, float *out)
{
    out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x) + tex1Dfetch<float>(texture, 31 - threadIdx.x);
}

// All blocks wait for one another, twice: they must be on the GPU together.
__global__ void together(unsigned *arrived, unsigned *out)
{
    for (unsigned round = 1; round <= 2; round++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(arrived, 1u);
            while (*(volatile unsigned *)arrived < round * gridDim.x) {}
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, 1u);
}

__global__ void cooperative(unsigned *data, unsigned n)
{
    cg::grid_group grid = cg::this_grid();
    for (unsigned i = grid.thread_rank(); i < n; i += grid.size()) data[i] = i;
    grid.sync();
    for (unsigned i = grid.thread_rank(); i < n; i += grid.size()) data[i] += data[(i + 1) % n] * 0 + 1;
}

__global__ void __cluster_dims__(2, 1, 1) neighbours(unsigned *out)
{
    __shared__ unsigned mine;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) mine = blockIdx.x + 1;
    cluster.sync();
    if (threadIdx.x == 0) out[blockIdx.x] = *cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
    cluster.sync();
}

static unsigned sum_of(const unsigned *device, unsigned n)
{
    unsigned *host = (unsigned *)malloc(n * sizeof *host), sum = 0;
    CHECK(cudaMemcpy(host, device, n * sizeof *host, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < n; i++) sum = sum * 31 + host[i];
    free(host);
    return sum;
}

int main()
{
    const unsigned n = 5000;
    unsigned *data, values[8], found;
    float *floats, sum = 0, back[32];
    cudaStream_t stream;
    CHECK(cudaMalloc(&data, 1 << 20));
    CHECK(cudaMalloc(&floats, 64 * sizeof(float)));
    CHECK(cudaStreamCreate(&stream));
    for (unsigned round = 0; round < 6; round++) { // the constants are others each time, and so is the stream
        cudaStream_t on = round % 2 ? stream : 0;
        for (unsigned i = 0; i < 8; i++) values[i] = i * i + round;
        CHECK(cudaMemcpyToSymbolAsync(table, values, sizeof values, 0, cudaMemcpyHostToDevice, on));
        count<<<(n + 127) / 128, 128, 0, on>>>(data, n);
        CHECK(cudaStreamSynchronize(on));
        CHECK(cudaMemcpyFromSymbol(&found, total, sizeof found));
        printf("count %u: %u %u %u\n", round, sum_of(data, n), found, managed);
    }
    choose<<<1, 1>>>();
    call<<<1, 64>>>(data);
    printf("call: %u\n", sum_of(data, 64));
    by_table<<<3, 64>>>(data);
    printf("by table: %u\n", sum_of(data, 64));

    for (int i = 0; i < 32; i++) back[i] = (float)(i * i);
    CHECK(cudaMemcpy(floats, back, sizeof back, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    cudaTextureDesc description = {};
    cudaTextureObject_t texture;
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {floats, {32, 0, 0, 0, cudaChannelFormatKindFloat}, sizeof back};
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    description.readMode = cudaReadModeElementType;
    CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
    look<<<1, 32>>>(texture, floats + 32);
    CHECK(cudaMemcpy(back, floats + 32, sizeof back, cudaMemcpyDeviceToHost));
    for (float each : back) sum += each;
    printf("look: %g\n", sum);

    int device = 0, multiprocessors, per_multiprocessor;
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    for (int threads : {32, 64, 256, 1024}) {
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, together, threads, 0));
        CHECK(cudaMemset(data, 0, 8));
        together<<<per_multiprocessor * multiprocessors, threads>>>(data, data + 1);
        CHECK(cudaDeviceSynchronize());
        printf("together %d: %d\n", threads, sum_of(data + 1, 1) == (unsigned)(per_multiprocessor * multiprocessors));
    }
    unsigned many = 100000;
    void *arguments[] = {&data, &many};
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, cooperative, 128, 0));
    CHECK(cudaLaunchCooperativeKernel((void *)cooperative, dim3(per_multiprocessor * multiprocessors), dim3(128),
                                      arguments, 0, stream));
    CHECK(cudaStreamSynchronize(stream));
    printf("cooperative: %u\n", sum_of(data, many));
    neighbours<<<64, 64>>>(data);
    CHECK(cudaDeviceSynchronize());
    printf("neighbours: %u\n", sum_of(data, 64));
    return 7;
}

// A CUDA C++ program on cudart: streams, a template kernel, a cooperative launch, a graph.
#include <cooperative_groups.h>
#include <cstdio>
#include <vector>

#define CHECK(call)                                                                   \
    do {                                                                              \
        cudaError_t status = (call);                                                  \
        if (status != cudaSuccess) {                                                  \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(status)); \
            return 1;                                                                 \
        }                                                                             \
    } while (0)

template <typename T>
__global__ void scale(T *data, T factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}

__device__ int launches_seen;

__global__ void total(const float *data, float *out, int n) {
    auto grid = cooperative_groups::this_grid();
    if (grid.thread_rank() == 0) { *out = 0; launches_seen++; }
    grid.sync();
    float sum = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += data[i];
    for (int offset = 16; offset; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

int main() {
    int n = 1 << 18;
    std::vector<float> host(n, 1.0f);
    float *data, *out, result;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMallocAsync(&data, n * sizeof(float), stream));
    CHECK(cudaMallocAsync(&out, sizeof(float), stream));
    CHECK(cudaMemcpyAsync(data, host.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
    for (int i = 0; i < 4; i++) scale<float><<<(n + 255) / 256, 256, 0, stream>>>(data, 2.0f, n);
    void *arguments[] = {&data, &out, &n};
    CHECK(cudaLaunchCooperativeKernel((void *)total, dim3(16), dim3(96), arguments, 0, stream));
    CHECK(cudaMemcpyAsync(&result, out, sizeof result, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::printf("total %.1f\n", result);

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 3; i++) scale<float><<<(n + 255) / 256, 256, 0, stream>>>(data, 0.5f, n);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 2; i++) CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaMemcpyAsync(host.data(), data, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    int seen = -1;
    CHECK(cudaMemcpyFromSymbolAsync(&seen, launches_seen, sizeof seen, 0, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::printf("graph %.3f seen %d\n", host[12345], seen);
    return 5;
}

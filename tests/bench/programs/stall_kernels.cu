// A stencil, a gather and a reduction, six launches each, for the comparison of waits with Nsight Compute.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int THREADS = 256, WIDTH = 4096, HEIGHT = 4096, COUNT = WIDTH * HEIGHT, RUNS = 6;

__global__ void stencil(const float *in, float *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < 1 || x >= WIDTH - 1) return;
    int first = blockIdx.y * 64;
    for (int y = max(first, 1); y < min(first + 64, HEIGHT - 1); y++) {
        const float *at = in + y * WIDTH + x;
        out[y * WIDTH + x] = 0.2f * (at[0] + at[-1] + at[1] + at[-WIDTH] + at[WIDTH]);
    }
}

__global__ void gather(const float *in, const int *places, float *out) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < COUNT; at += gridDim.x * blockDim.x)
        out[at] = in[places[at]];
}

__global__ void row_sum(const float *in, float *out) {
    __shared__ float parts[THREADS / 32];
    float sum = 0;
    for (int x = threadIdx.x; x < WIDTH; x += THREADS) sum += in[blockIdx.x * WIDTH + x];
    for (int lane = 16; lane; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = threadIdx.x < THREADS / 32 ? parts[threadIdx.x] : 0;
    for (int lane = 4; lane; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void fill(float *in, int *places) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    in[at] = at % 7;
    places[at] = (at * 2654435761u >> 3) % COUNT;
}

int main() {
    float *in, *out;
    int *places;
    if (cudaMalloc(&in, COUNT * 4) || cudaMalloc(&out, COUNT * 4) || cudaMalloc(&places, COUNT * 4)) return 1;
    fill<<<COUNT / THREADS, THREADS>>>(in, places);
    for (int run = 0; run < RUNS; run++) {
        stencil<<<dim3(WIDTH / THREADS, HEIGHT / 64), THREADS>>>(in, out);
        gather<<<1056, THREADS>>>(in, places, out);
        row_sum<<<HEIGHT, THREADS>>>(in, out);
    }
    std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}

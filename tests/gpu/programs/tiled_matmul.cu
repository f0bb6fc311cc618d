// A matrix product by tiles in shared memory, 1024 x 1024 x 1024 in single precision. Prints a checksum.
//   tiled_matmul [TIMES, by default 3] [MILLISECONDS between one and the next]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#ifndef TILE
#define TILE 32
#endif
constexpr int SIZE = 1024;

extern "C" __global__ void tiled_matmul(float *c, const float *a, const float *b, int size) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < size; start += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * size + start + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * size + column];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * size + column] = sum;
}

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

int main(int count, char **words) {
    const int times = count > 1 ? std::atoi(words[1]) : 3, pause = count > 2 ? std::atoi(words[2]) : 0;
    std::vector<float> values(SIZE * SIZE);
    for (int i = 0; i < SIZE * SIZE; ++i) values[i] = static_cast<float>(i % 17 - 8);
    float *a = nullptr, *c = nullptr;
    const size_t bytes = values.size() * sizeof(float);
    check(cudaMalloc(&a, bytes));
    check(cudaMalloc(&c, bytes));
    check(cudaMemcpy(a, values.data(), bytes, cudaMemcpyHostToDevice));
    for (int run = 0; run < times; ++run) {
        tiled_matmul<<<dim3(SIZE / TILE, SIZE / TILE), dim3(TILE, TILE)>>>(c, a, a, SIZE);
        check(cudaDeviceSynchronize());
        std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    }
    check(cudaMemcpy(values.data(), c, bytes, cudaMemcpyDeviceToHost));
    double sum = 0;
    for (float value : values) sum = sum * 0.5 + value;
    std::printf("tiled matmul %.17g\n", sum);
    return 0;
}

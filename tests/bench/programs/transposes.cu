// Transposes of a matrix: directly, through a tile with bank conflicts, and through a padded tile.
#include <cstdio>
#include <vector>

const int SIDE = 32;

__global__ void direct(int *after, const int *before, int width)
{
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    after[x * width + y] = before[y * width + x];
}

template <int PITCH> __global__ void tiled(int *after, const int *before, int width)
{
    __shared__ int tile[SIDE][PITCH];
    int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = before[y * width + x];
    __syncthreads();
    x = blockIdx.y * SIDE + threadIdx.x, y = blockIdx.x * SIDE + threadIdx.y;
    after[y * width + x] = tile[threadIdx.x][threadIdx.y];
}

int main()
{
    const int width = 2048;
    std::vector<int> host(width * width);
    for (size_t i = 0; i < host.size(); i++)
        host[i] = i;
    int *before, *after;
    cudaMalloc(&before, host.size() * 4);
    cudaMalloc(&after, host.size() * 4);
    cudaMemcpy(before, host.data(), host.size() * 4, cudaMemcpyHostToDevice);
    dim3 blocks(width / SIDE, width / SIDE), threads(SIDE, SIDE);
    for (int round = 0; round < 10; round++) {
        direct<<<blocks, threads>>>(after, before, width);
        tiled<SIDE><<<blocks, threads>>>(before, after, width);
        tiled<SIDE + 1><<<blocks, threads>>>(after, before, width);
        direct<<<blocks, threads>>>(before, after, width);
    }
    cudaMemcpy(host.data(), before, host.size() * 4, cudaMemcpyDeviceToHost);
    long wrong = 0;
    for (size_t i = 0; i < host.size(); i++)
        wrong += host[i] != int(i);
    printf("%ld wrong %s\n", wrong, cudaGetErrorString(cudaGetLastError()));
}

// A hundred generations of Conway's Game of Life: loads of single bytes from eight neighbours.
#include <cstdio>
#include <utility>
#include <vector>

__global__ void generation(unsigned char *after, const unsigned char *before, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, neighbours = 0;
    for (int down = -1; down <= 1; down++)
        for (int right = -1; right <= 1; right++)
            if (down || right)
                neighbours += before[(y + down & width - 1) * width + (x + right & width - 1)];
    after[y * width + x] = neighbours == 3 || (neighbours == 2 && before[y * width + x]);
}

int main()
{
    const int width = 1024;
    std::vector<unsigned char> host(width * width);
    for (int i = 0; i < width * width; i++)
        host[i] = (i * 2654435761u >> 16) % 3 == 0;
    unsigned char *before, *after;
    cudaMalloc(&before, host.size());
    cudaMalloc(&after, host.size());
    cudaMemcpy(before, host.data(), host.size(), cudaMemcpyHostToDevice);
    for (int round = 0; round < 100; round++) {
        generation<<<dim3(width / 128, width), 128>>>(after, before, width);
        std::swap(before, after);
    }
    cudaMemcpy(host.data(), before, host.size(), cudaMemcpyDeviceToHost);
    int alive = 0;
    for (unsigned char cell : host)
        alive += cell;
    printf("%d %s\n", alive, cudaGetErrorString(cudaGetLastError()));
}

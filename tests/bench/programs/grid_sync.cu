// Cooperative launches: a stencil that synchronises the whole grid between steps.
#include <cooperative_groups.h>
#include <cstdio>
#include <utility>

namespace cg = cooperative_groups;

__global__ void steps(float *from, float *to, int n, int count)
{
    cg::grid_group grid = cg::this_grid();
    for (int step = 0; step < count; step++) {
        for (int i = grid.thread_rank(); i < n; i += grid.size())
            to[i] = 0.25f * from[(i + n - 1) % n] + 0.5f * from[i] + 0.25f * from[(i + 1) % n];
        grid.sync();
        float *other = from;
        from = to;
        to = other;
    }
}

int main()
{
    int n = 1 << 20, count = 50, blocks = 0, processors = 0;
    float *a, *b, host[4];
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, steps, 256, 0);
    cudaMallocManaged(&a, n * sizeof *a);
    cudaMallocManaged(&b, n * sizeof *b);
    for (int i = 0; i < n; i++)
        a[i] = i % 1000;
    void *arguments[] = {&a, &b, &n, &count};
    for (int round = 0; round < 200; round++)
        cudaLaunchCooperativeKernel((void *)steps, dim3(processors * (blocks > 2 ? 2 : blocks)), dim3(256), arguments, 0, 0);
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; i++)
        host[i] = a[i * 1000];
    printf("%.6g %.6g %.6g %.6g %s\n", host[0], host[1], host[2], host[3], cudaGetErrorString(cudaGetLastError()));
}

// K-means of points in the plane, in managed memory that host and GPU use in turn.
#include <cstdio>

const int CLUSTERS = 16;

__global__ void assign(const int2 *points, int n, const int2 *centres, unsigned long long *sums)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int nearest = 0;
    long best = 1L << 62;
    for (int k = 0; k < CLUSTERS; k++) {
        long x = points[i].x - centres[k].x, y = points[i].y - centres[k].y, distance = x * x + y * y;
        if (distance < best)
            best = distance, nearest = k;
    }
    atomicAdd(&sums[3 * nearest], points[i].x);
    atomicAdd(&sums[3 * nearest + 1], points[i].y);
    atomicAdd(&sums[3 * nearest + 2], 1);
}

int main()
{
    const int n = 1 << 17;
    int2 *points, *centres;
    unsigned long long *sums;
    cudaMallocManaged(&points, n * sizeof *points);
    cudaMallocManaged(&centres, CLUSTERS * sizeof *centres);
    cudaMallocManaged(&sums, 3 * CLUSTERS * sizeof *sums);
    for (int i = 0; i < n; i++)
        points[i] = {int(i * 2654435761u >> 12), int(i * 40503u * 2654435761u >> 12)};
    for (int k = 0; k < CLUSTERS; k++)
        centres[k] = points[k * 1000];
    for (int round = 0; round < 10; round++) {
        cudaMemset(sums, 0, 3 * CLUSTERS * sizeof *sums);
        assign<<<n / 256, 256>>>(points, n, centres, sums);
        cudaDeviceSynchronize();
        for (int k = 0; k < CLUSTERS; k++)
            if (sums[3 * k + 2])
                centres[k] = {int(sums[3 * k] / sums[3 * k + 2]), int(sums[3 * k + 1] / sums[3 * k + 2])};
    }
    printf("%d %d %s\n", centres[0].x, centres[15].y, cudaGetErrorString(cudaGetLastError()));
}

// Shortest paths between 512 nodes (Floyd and Warshall): 512 launches in a row, each of a few microseconds.
#include <cstdio>
#include <vector>

__global__ void relax(int *distances, int n, int through)
{
    int to = blockIdx.x * blockDim.x + threadIdx.x, from = blockIdx.y;
    int way = distances[from * n + through] + distances[through * n + to];
    if (way < distances[from * n + to])
        distances[from * n + to] = way;
}

int main()
{
    const int n = 512;
    std::vector<int> host(n * n);
    for (int i = 0; i < n * n; i++)
        host[i] = i / n == i % n ? 0 : 1 + (i * 2654435761u >> 20);
    int *distances;
    cudaMalloc(&distances, host.size() * 4);
    cudaMemcpy(distances, host.data(), host.size() * 4, cudaMemcpyHostToDevice);
    for (int through = 0; through < n; through++)
        relax<<<dim3(n / 128, n), 128>>>(distances, n, through);
    cudaMemcpy(host.data(), distances, host.size() * 4, cudaMemcpyDeviceToHost);
    long sum = 0;
    for (int distance : host)
        sum += distance;
    printf("%ld %s\n", sum, cudaGetErrorString(cudaGetLastError()));
}

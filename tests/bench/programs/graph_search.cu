// Breadth-first search of a graph: the program reads a flag after each level, so launches and copies alternate.
#include <cstdio>
#include <vector>

__global__ void visit(const int *edges, int degree, int *levels, int level, int n, int *found)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= n || levels[node] != level)
        return;
    for (int k = 0; k < degree; k++) {
        int neighbour = edges[node * degree + k];
        if (levels[neighbour] < 0) {
            levels[neighbour] = level + 1;
            *found = 1;
        }
    }
}

int main()
{
    const int n = 1 << 18, degree = 4;
    std::vector<int> edges(n * degree), levels(n, -1);
    for (int i = 0; i < n * degree; i++)
        edges[i] = (i * 2654435761u + 12345u) >> 14;
    levels[0] = 0;
    int *d_edges, *d_levels, *d_found;
    cudaMalloc(&d_edges, edges.size() * 4);
    cudaMalloc(&d_levels, n * 4);
    cudaMalloc(&d_found, 4);
    cudaMemcpy(d_edges, edges.data(), edges.size() * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(d_levels, levels.data(), n * 4, cudaMemcpyHostToDevice);
    int level = 0, found = 1;
    for (; found; level++) {
        cudaMemset(d_found, 0, 4);
        visit<<<n / 256, 256>>>(d_edges, degree, d_levels, level, n, d_found);
        cudaMemcpy(&found, d_found, 4, cudaMemcpyDeviceToHost);
    }
    cudaMemcpy(levels.data(), d_levels, n * 4, cudaMemcpyDeviceToHost);
    int reached = 0;
    for (int value : levels)
        reached += value >= 0;
    printf("%d levels, %d nodes %s\n", level, reached, cudaGetErrorString(cudaGetLastError()));
}

// The edit distance of two texts by anti-diagonals: 2 047 launches, of one to four blocks.
#include <cstdio>
#include <vector>

__global__ void diagonal(const char *a, const char *b, int n, int sum, int *next, const int *last, const int *before)
{
    int first = sum < n ? 0 : sum - n + 1, i = first + blockIdx.x * blockDim.x + threadIdx.x, j = sum - i;
    if (i >= n || j < 0)
        return;
    int left = j ? last[i] : i + 1, up = i ? last[i - 1] : j + 1;
    int corner = i && j ? before[i - 1] : i + j;
    int changed = corner + (a[i] != b[j]), moved = 1 + (left < up ? left : up);
    next[i] = changed < moved ? changed : moved;
}

int main()
{
    const int n = 1024;
    std::vector<char> a(n), b(n);
    for (int i = 0; i < n; i++) {
        a[i] = 'a' + (i * 2654435761u >> 28);
        b[i] = 'a' + ((i + i / 50) * 2654435761u >> 28);
    }
    char *d_a, *d_b;
    int *rows[3], distance;
    cudaMalloc(&d_a, n);
    cudaMalloc(&d_b, n);
    for (int *&row : rows)
        cudaMalloc(&row, n * sizeof(int));
    cudaMemcpy(d_a, a.data(), n, cudaMemcpyHostToDevice);
    cudaMemcpy(d_b, b.data(), n, cudaMemcpyHostToDevice);
    for (int sum = 0; sum < 2 * n - 1; sum++) {
        int cells = sum < n ? sum + 1 : 2 * n - 1 - sum;
        diagonal<<<(cells + 255) / 256, 256>>>(d_a, d_b, n, sum, rows[sum % 3], rows[(sum + 2) % 3], rows[(sum + 1) % 3]);
    }
    cudaMemcpy(&distance, rows[(2 * n - 2) % 3] + n - 1, sizeof distance, cudaMemcpyDeviceToHost);
    printf("%d %s\n", distance, cudaGetErrorString(cudaGetLastError()));
}

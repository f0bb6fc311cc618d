// A Mandelbrot set: lanes of a warp leave the loop at different iterations.
#include <cstdio>
#include <vector>

__global__ void iterate(int *counts, int width, int limit)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float real = -2.0f + 3.0f * x / width, imaginary = -1.5f + 3.0f * y / width, a = 0, b = 0;
    int count = 0;
    while (count < limit && a * a + b * b < 4) {
        float next = a * a - b * b + real;
        b = 2 * a * b + imaginary;
        a = next;
        count++;
    }
    counts[y * width + x] = count;
}

int main()
{
    const int width = 1024;
    int *counts;
    cudaMalloc(&counts, width * width * sizeof *counts);
    for (int limit = 64; limit <= 1024; limit *= 2)
        iterate<<<dim3(width / 16, width / 16), dim3(16, 16)>>>(counts, width, limit);
    std::vector<int> host(width * width);
    cudaMemcpy(host.data(), counts, host.size() * sizeof(int), cudaMemcpyDeviceToHost);
    long sum = 0;
    for (int count : host)
        sum += count;
    printf("%ld %s\n", sum, cudaGetErrorString(cudaGetLastError()));
}

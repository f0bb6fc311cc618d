// A separable filter over an image: weights in constant memory, rows and columns as two template instances.
#include <cstdio>
#include <vector>

const int RADIUS = 8;
__constant__ float weights[2 * RADIUS + 1];

template <bool ROWS> __global__ void filter(float *after, const float *before, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; k++) {
        int at = ROWS ? x + k : y + k;
        at = at < 0 ? 0 : at >= width ? width - 1 : at;
        sum += weights[k + RADIUS] * (ROWS ? before[y * width + at] : before[at * width + x]);
    }
    after[y * width + x] = sum;
}

int main()
{
    const int width = 2048;
    float host[2 * RADIUS + 1];
    for (float &weight : host)
        weight = 1.0f / (2 * RADIUS + 1);
    cudaMemcpyToSymbol(weights, host, sizeof host);
    std::vector<float> image(width * width);
    for (size_t i = 0; i < image.size(); i++)
        image[i] = i * 2654435761u >> 24;
    float *source, *target;
    cudaMalloc(&source, image.size() * 4);
    cudaMalloc(&target, image.size() * 4);
    cudaMemcpy(source, image.data(), image.size() * 4, cudaMemcpyHostToDevice);
    dim3 blocks(width / 32, width / 8), threads(32, 8);
    for (int round = 0; round < 5; round++) {
        filter<true><<<blocks, threads>>>(target, source, width);
        filter<false><<<blocks, threads>>>(source, target, width);
    }
    cudaMemcpy(image.data(), source, image.size() * 4, cudaMemcpyDeviceToHost);
    printf("%.6g %.6g %s\n", image[0], image[width * 1000 + 77], cudaGetErrorString(cudaGetLastError()));
}

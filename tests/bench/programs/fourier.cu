// Fourier transforms of 4 096 rows of 512 numbers, there and back, in dynamic shared memory.
#include <cstdio>
#include <vector>

const int N = 512;

__global__ void transform(float2 *rows, float sign, float scale)
{
    extern __shared__ float2 values[];
    float2 *row = rows + blockIdx.x * N;
    int thread = threadIdx.x;
    for (int i = thread; i < N; i += N / 2)
        values[__brev(i) >> 23] = row[i];
    for (int half = 1; half < N; half *= 2) {
        __syncthreads();
        int low = thread / half * 2 * half + thread % half, high = low + half;
        float sine, cosine;
        sincospif(sign * (thread % half) / half, &sine, &cosine);
        float2 a = values[low], b = values[high];
        float2 turned = {b.x * cosine - b.y * sine, b.x * sine + b.y * cosine};
        values[low] = {a.x + turned.x, a.y + turned.y};
        values[high] = {a.x - turned.x, a.y - turned.y};
    }
    __syncthreads();
    for (int i = thread; i < N; i += N / 2)
        row[i] = {values[i].x * scale, values[i].y * scale};
}

int main()
{
    const int count = 4096;
    std::vector<float2> host(count * N);
    for (int i = 0; i < count * N; i++)
        host[i] = {float(i % 17), float(i % 5)};
    float2 *rows;
    cudaMalloc(&rows, host.size() * sizeof *rows);
    cudaMemcpy(rows, host.data(), host.size() * sizeof *rows, cudaMemcpyHostToDevice);
    transform<<<count, N / 2, N * sizeof(float2)>>>(rows, -1, 1);
    transform<<<count, N / 2, N * sizeof(float2)>>>(rows, 1, 1.0f / N);
    cudaMemcpy(host.data(), rows, host.size() * sizeof *rows, cudaMemcpyDeviceToHost);
    double worst = 0;
    for (int i = 0; i < count * N; i++) {
        double error = host[i].x - i % 17;
        worst = error * error > worst ? error * error : worst;
    }
    printf("%s %s\n", worst < 1e-6 ? "same" : "different", cudaGetErrorString(cudaGetLastError()));
}

// Layer norms of half-precision rows, for three row lengths as template arguments.
#include <cstdio>
#include <cuda_fp16.h>
#include <vector>

template <int LENGTH> __global__ void normalise(__half2 *rows)
{
    __half2 *row = rows + blockIdx.x * (LENGTH / 2);
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < LENGTH / 2; i += 32) {
        float2 pair = __half22float2(row[i]);
        sum += pair.x + pair.y;
        squares += pair.x * pair.x + pair.y * pair.y;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(~0u, sum, distance);
        squares += __shfl_xor_sync(~0u, squares, distance);
    }
    float mean = sum / LENGTH, scale = rsqrtf(squares / LENGTH - mean * mean + 1e-5f);
    for (int i = threadIdx.x; i < LENGTH / 2; i += 32) {
        float2 pair = __half22float2(row[i]);
        row[i] = __floats2half2_rn((pair.x - mean) * scale, (pair.y - mean) * scale);
    }
}

int main()
{
    const int count = 1 << 22;
    std::vector<__half2> host(count / 2);
    for (int i = 0; i < count / 2; i++)
        host[i] = __floats2half2_rn(i % 61, i % 37);
    __half2 *rows;
    cudaMalloc(&rows, count * sizeof(__half));
    cudaMemcpy(rows, host.data(), count * sizeof(__half), cudaMemcpyHostToDevice);
    normalise<256><<<count / 256, 32>>>(rows);
    normalise<1024><<<count / 1024, 32>>>(rows);
    normalise<4096><<<count / 4096, 32>>>(rows);
    cudaMemcpy(host.data(), rows, count * sizeof(__half), cudaMemcpyDeviceToHost);
    printf("%.4g %.4g %s\n", __low2float(host[0]), __high2float(host[4095]), cudaGetErrorString(cudaGetLastError()));
}

// Forty kernels with the same work of different lengths; the argument is the per cent of more iterations that each has.
// A kernel is launched often: a mean over its launches is what a gate compares.
#include <cstdio>
#include <cstdlib>
#include <utility>

constexpr int KERNELS = 40, LAUNCHES = 40, BLOCKS = 264, THREADS = 256;

template <int K> __global__ void work(float *out, int iterations)
{
    float a = threadIdx.x * 1e-3f, b = blockIdx.x * 1e-3f;
    for (int i = 0; i < iterations; i++) {
        a = fmaf(a, 1.0001f, b);
        b = fmaf(b, 0.9999f, a);
    }
    out[blockIdx.x * THREADS + threadIdx.x] = a + b + K;
}

template <int... K> void launch_all(float *out, double factor, std::integer_sequence<int, K...>)
{
    (work<K><<<BLOCKS, THREADS>>>(out, int((10000 + 750 * K) * factor)), ...);
}

int main(int count, char **words)
{
    double factor = 1 + (count > 1 ? atof(words[1]) / 100 : 0);
    float *out;
    cudaMalloc(&out, sizeof(float) * BLOCKS * THREADS);
    for (int i = 0; i < LAUNCHES; i++)
        launch_all(out, factor, std::make_integer_sequence<int, KERNELS>{});
    cudaError_t status = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(status));
    return status != cudaSuccess;
}

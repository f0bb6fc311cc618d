// Black-Scholes prices of a million options: one launch, bound by special functions.
#include <cstdio>
#include <vector>

__device__ float cumulative_normal(float x)
{
    return 0.5f * erfcf(-x * 0.70710678f);
}

__global__ void price(float *call, float *put, int n, float rate, float volatility)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float spot = 5 + (i % 97) * 0.3f, strike = 1 + (i % 89) * 0.4f, years = 0.25f + (i % 31) * 0.3f;
    float root = sqrtf(years);
    float d1 = (logf(spot / strike) + (rate + 0.5f * volatility * volatility) * years) / (volatility * root);
    float d2 = d1 - volatility * root, discounted = strike * expf(-rate * years);
    call[i] = spot * cumulative_normal(d1) - discounted * cumulative_normal(d2);
    put[i] = discounted * cumulative_normal(-d2) - spot * cumulative_normal(-d1);
}

int main()
{
    const int n = 1 << 20;
    float *call, *put;
    cudaMalloc(&call, n * sizeof *call);
    cudaMalloc(&put, n * sizeof *put);
    price<<<n / 256, 256>>>(call, put, n, 0.02f, 0.3f);
    std::vector<float> calls(n), puts(n);
    cudaMemcpy(calls.data(), call, n * sizeof *call, cudaMemcpyDeviceToHost);
    cudaMemcpy(puts.data(), put, n * sizeof *put, cudaMemcpyDeviceToHost);
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += calls[i] - puts[i];
    printf("%.6g %s\n", sum, cudaGetErrorString(cudaGetLastError()));
}

// A product of half-precision matrices by tensor cores (wmma), checked by row and column sums.
#include <cstdio>
#include <mma.h>
#include <vector>

using namespace nvcuda;

__global__ void multiply(const __half *a, const __half *b, float *c, int n)
{
    int row = blockIdx.y * 16, column = (blockIdx.x * 4 + threadIdx.x / 32) * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(left, a + row * n + k, n);
        wmma::load_matrix_sync(right, b + k * n + column, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

int main()
{
    const int n = 1024;
    std::vector<__half> host(n * n);
    for (int i = 0; i < n * n; i++)
        host[i] = __float2half(i % 7 - 3);
    __half *a;
    float *c;
    cudaMalloc(&a, n * n * sizeof *a);
    cudaMalloc(&c, n * n * sizeof *c);
    cudaMemcpy(a, host.data(), n * n * sizeof *a, cudaMemcpyHostToDevice);
    for (int round = 0; round < 3; round++)
        multiply<<<dim3(n / 64, n / 16), 128>>>(a, a, c, n);
    std::vector<float> product(n * n);
    cudaMemcpy(product.data(), c, n * n * sizeof *c, cudaMemcpyDeviceToHost);
    double sum = 0;
    for (float value : product)
        sum += value;
    printf("%.9g %.9g %s\n", sum, product[12345], cudaGetErrorString(cudaGetLastError()));
}

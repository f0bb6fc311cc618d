// Conjugate gradients on a sparse matrix in CSR form: gathers, dot products, four kernels per step.
#include <cstdio>
#include <vector>

__global__ void multiply(const int *starts, const int *columns, const float *values, const float *x, float *y, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n)
        return;
    float sum = 0;
    for (int k = starts[row]; k < starts[row + 1]; k++)
        sum += values[k] * x[columns[k]];
    y[row] = sum;
}

__global__ void dot(const float *x, const float *y, float *result, int n)
{
    __shared__ float sums[1024];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[i] * y[i];
    sums[threadIdx.x] = sum;
    for (int half = 512; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        *result = sums[0];
}

__global__ void advance(float *x, float *rest, const float *direction, const float *product, const float *scalars, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float step = scalars[0] / scalars[1];
    if (i < n) {
        x[i] += step * direction[i];
        rest[i] -= step * product[i];
    }
}

__global__ void turn(float *direction, const float *rest, const float *scalars, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        direction[i] = rest[i] + scalars[2] / scalars[0] * direction[i];
}

int main()
{
    const int side = 128, n = side * side;
    std::vector<int> starts{0}, columns;
    std::vector<float> values, ones(n, 1);
    for (int row = 0; row < n; row++) {
        for (int neighbour : {row - side, row - 1, row, row + 1, row + side})
            if (neighbour >= 0 && neighbour < n) {
                columns.push_back(neighbour);
                values.push_back(neighbour == row ? 4.5f : -1);
            }
        starts.push_back(columns.size());
    }
    int *d_starts, *d_columns;
    float *d_values, *x, *rest, *direction, *product, *scalars;
    cudaMalloc(&d_starts, starts.size() * 4);
    cudaMalloc(&d_columns, columns.size() * 4);
    cudaMalloc(&d_values, values.size() * 4);
    for (float **vector : {&x, &rest, &direction, &product})
        cudaMalloc(vector, n * 4);
    cudaMalloc(&scalars, 12);
    cudaMemcpy(d_starts, starts.data(), starts.size() * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(d_columns, columns.data(), columns.size() * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(d_values, values.data(), values.size() * 4, cudaMemcpyHostToDevice);
    cudaMemset(x, 0, n * 4);
    cudaMemcpy(rest, ones.data(), n * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(direction, ones.data(), n * 4, cudaMemcpyHostToDevice);
    const int blocks = n / 128;
    for (int round = 0; round < 25; round++) {
        multiply<<<blocks, 128>>>(d_starts, d_columns, d_values, direction, product, n);
        dot<<<1, 1024>>>(rest, rest, scalars, n);
        dot<<<1, 1024>>>(direction, product, scalars + 1, n);
        advance<<<blocks, 128>>>(x, rest, direction, product, scalars, n);
        dot<<<1, 1024>>>(rest, rest, scalars + 2, n);
        turn<<<blocks, 128>>>(direction, rest, scalars, n);
    }
    float result[2];
    cudaMemcpy(result, x + n / 2, sizeof result, cudaMemcpyDeviceToHost);
    printf("%.5g %.5g %s\n", result[0], result[1], cudaGetErrorString(cudaGetLastError()));
}

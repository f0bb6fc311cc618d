// Five kernels of 8 to 14 registers: `nvcc -ptx -arch=sm_90 tiny_kernels.cu`, then `tui-probe check dmat tiny_kernels.ptx`
// prints the registers with a probe and without.

extern "C" __global__ void zero_fill(float *a)
{
    a[blockIdx.x * blockDim.x + threadIdx.x] = 0;
}

extern "C" __global__ void two_stores(float *a, float *b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = 1;
    b[2 * i] = 2;
}

extern "C" __global__ void saxpy(int n, float k, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = k * x[i] + y[i];
}

extern "C" __global__ void row_sum(const float *x, float *s, int n)
{
    float t = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        t += x[blockIdx.x * n + i];
    for (int d = 16; d; d /= 2)
        t += __shfl_xor_sync(~0u, t, d);
    if (threadIdx.x % 32 == 0)
        atomicAdd(s + blockIdx.x, t);
}

extern "C" __global__ void gather(const int *at, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[at[i]];
}

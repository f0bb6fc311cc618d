// The kernels of the GPU tests; built to PTX, cubin and fatbin by nvcc on the GPU machine.
extern "C" __global__ void zero_fill(float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 0.0f;
}

extern "C" __global__ void saxpy(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

// A module variable that a kernel changes and the host reads: a probed kernel must share it.
__device__ unsigned int visits;
static __device__ unsigned int hidden_visits;
__constant__ float scale[4];

extern "C" __global__ void count_visits(float *out) {
    atomicAdd(&visits, 1u);
    atomicAdd(&hidden_visits, 2u);
    out[blockIdx.x * blockDim.x + threadIdx.x] = scale[threadIdx.x & 3] + (float)(hidden_visits != 0);
}

extern "C" __global__ void nothing() {}

// Cycles and nanoseconds over the same interval: what one SM clock cycle lasts.
extern "C" __global__ void clock_rate(unsigned long long *out) {
    unsigned long long t0, t1, c0 = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0));
    do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1)); } while (t1 - t0 < 2000000ull);
    out[0] = clock64() - c0;
    out[1] = t1 - t0;
}

// Control flow: a switch dense enough for a branch table, loops, early exits, traps, a kernel without parameters.
__device__ int counter;

extern "C" __global__ void no_parameters() { atomicAdd(&counter, 1); }

extern "C" __global__ void empty() {}

extern "C" __global__ void dispatch(float *out, const float *in, int operation) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    switch (operation) {
        case 0: x = sinf(x); break;
        case 1: x = x * x + 3.0f; break;
        case 2: x = sqrtf(x) * out[i]; break;
        case 3: for (int k = 0; k < 16; ++k) x = x * 1.25f + out[i + k]; break;
        case 4: x = fminf(x, out[i + 7]); break;
        case 5: x = fabsf(x) / out[i]; break;
        case 6: x = __int_as_float(__float_as_int(x) ^ 0x55aa); break;
        case 7: x = rintf(x) - out[i]; break;
        case 8: out[2 * i] = x; break;
        case 9: x = exp2f(x); break;
        default: return;
    }
    out[i] = x;
}

extern "C" __global__ void leave_early(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (out[i] < 0) asm volatile("exit;");
    if (out[i] > 1000000) __trap();
    int steps = 0;
    for (int x = out[i]; x > 1; ++steps) x = (x & 1) ? 3 * x + 1 : x / 2;
    out[i] = steps;
}

extern "C" __global__ void nested_loops(double *out, int n, int m) {
    double sum = 0;
    for (int i = 0; i < n; ++i) {
#pragma unroll 1
        for (int j = threadIdx.x; j < m; j += blockDim.x) {
            if (out[i * m + j] == 0) continue;
            if (out[i * m + j] < 0) break;
            sum += out[i * m + j];
        }
    }
    out[threadIdx.x] = sum;
}

// Loads and stores of every size and space.
#include <cstdint>

struct __align__(16) Wide {
    float a, b, c, d;
};

extern "C" __global__ void vectors(float4 *quads, double2 *doubles, uchar4 *bytes, short2 *shorts, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float4 q = quads[i];
    quads[i] = make_float4(q.w, q.z, q.y + 1, q.x * 2);
    double2 d = doubles[i];
    doubles[i] = make_double2(d.y, d.x - 1);
    uchar4 b = bytes[i];
    bytes[i] = make_uchar4(b.y, b.x, b.w, b.z + 1);
    short2 s = shorts[i];
    shorts[i] = make_short2(s.y, -s.x);
}

// Signed and unsigned bytes and halfwords are extended as they are loaded.
extern "C" __global__ void narrow(int *output, const int8_t *s8, const uint8_t *u8, const int16_t *s16, const uint16_t *u16) {
    int i = threadIdx.x;
    output[i] = s8[i] + 1000 * u8[i] + 3 * s16[i] - u16[i];
}

extern "C" __global__ void local_array(int *output, const int *order) {
    int values[16], i = threadIdx.x;
    for (int k = 0; k < 16; k++) values[k] = k * k + i;
    int *where = values + (order[i] & 7);
    where[order[i] & 3] = -1;
    int sum = 0;
    for (int k = 0; k < 16; k++) sum = 3 * sum + values[(k + order[i]) & 15];
    output[i] = sum;
}

// A pointer that is to shared memory for some threads, to global or local memory for others.
extern "C" __global__ void generic(int *output, int *global) {
    __shared__ int shared[64];
    int local[2] = {(int)threadIdx.x, 5}, i = threadIdx.x;
    shared[i] = 1000 + i;
    __syncthreads();
    int *pointer = i % 3 == 0 ? &global[i] : i % 3 == 1 ? &shared[(i + 1) % 64] : &local[i & 1];
    *pointer += 7;
    __syncthreads();
    output[i] = *pointer + shared[i] + __isShared(pointer) * 10000 + __isGlobal(pointer) * 20000;
}

__constant__ float coefficients[4] = {1.5f, -2, 3, 0.25f};
__constant__ int table[8];
__device__ int counter = 7;
__device__ int *counter_address = &counter;
__device__ short matrix[2][3] = {{1, -2, 3}, {4, 5, -6}};
__device__ double scratch;
__device__ const char text[] = "ab";

extern "C" __global__ void variables(float *output) {
    int i = threadIdx.x;
    output[i] = coefficients[i & 3] + *counter_address + matrix[i & 1][i % 3] + text[i & 1] + table[i & 7];
    if (i == 0) scratch = 2.5;
}

// 5 000 000 000 bytes are past 32 bits.
extern "C" __global__ void wide_index(unsigned long long *output, long long stride, int divisor) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    long long offset = i * stride * 1000003ll;
    output[i] = offset / divisor + offset % divisor + (unsigned long long)(offset >> 7) * 3;
}

extern __shared__ int dynamic[];
extern "C" __global__ void shared_reversed(int *data) {
    __shared__ short ordinary[3];
    if (threadIdx.x < 3) ordinary[threadIdx.x] = threadIdx.x + 1;
    dynamic[threadIdx.x] = data[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    data[blockIdx.x * blockDim.x + threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x] + ordinary[threadIdx.x % 3];
}

struct Parameters {
    int values[6];
    Wide wide;
    char letter;
};
extern "C" __global__ void by_value(float *output, char first, Parameters parameters, short last) {
    int i = threadIdx.x;
    output[i] = parameters.values[i % 6] + (&parameters.wide.a)[i & 3] + first + parameters.letter + last;
}

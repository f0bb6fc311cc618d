// The mathematical functions of CUDA, as nvcc spells them out in PTX; half precision.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void singles(float *output, const float *input, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = input[i], *to = output + i;
    to[0] = expf(x);
    to[count] = logf(fabsf(x) + 1);
    to[2 * count] = sinf(x);
    to[3 * count] = cosf(x * 1000);
    to[4 * count] = powf(fabsf(x), 1.7f);
    to[5 * count] = tanhf(x);
    to[6 * count] = erff(x);
    to[7 * count] = fmodf(x, 0.37f);
    to[8 * count] = sqrtf(fabsf(x)) / (x + 3);
    to[9 * count] = atan2f(x, 2);
    to[10 * count] = rintf(x) + floorf(x) + ceilf(x) + truncf(x);
    to[11 * count] = cbrtf(x) + log1pf(fabsf(x)) + exp2f(x * 0.25f);
}

extern "C" __global__ void doubles(double *output, const double *input, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double x = input[i], *to = output + i;
    to[0] = exp(x);
    to[count] = log(fabs(x) + 1);
    to[2 * count] = sin(x);
    to[3 * count] = pow(fabs(x), 1.7);
    to[4 * count] = x / (x * x + 3);
    to[5 * count] = sqrt(fabs(x)) + cbrt(x);
    to[6 * count] = fmod(x, 0.37);
    to[7 * count] = 1 / (x + 100.5);
}

extern "C" __global__ void halves(__half *sums, __half2 *pairs, __nv_bfloat16 *brains, float *singles, const float *input) {
    int i = threadIdx.x;
    float x = input[i];
    __half h = __float2half(x);
    sums[i] = __hfma(h, h, __hadd(h, __float2half(0.5f)));
    __half2 two = __floats2half2_rn(x, -x);
    pairs[i] = __hmul2(__hadd2(two, two), __half2(h, h));
    brains[i] = __float2bfloat16(x) * __float2bfloat16(1.5f) + __float2bfloat16(0.25f);
    singles[i] = __half2float(h) + __bfloat162float(__float2bfloat16(x)) + (__hgt(h, __float2half(0.f)) ? 10 : 0) + __half2int_rn(h);
}

extern "C" __global__ void integers(long long *output, const long long *a, const long long *b, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    long long x = a[i], y = b[i], *to = output + i;
    to[0] = x / y;
    to[count] = x % y;
    to[2 * count] = (long long)((unsigned long long)x / (unsigned long long)y);
    to[3 * count] = __mul64hi(x, y);
    to[4 * count] = x * y + (x << (y & 63)) + (x >> (y & 31));
    to[5 * count] = __popcll(x) + __clzll(y) + __ffsll(x) + (int)x / 7 + (int)y % 10 + (unsigned)x / 1000u;
    to[6 * count] = (long long)__brevll(x) + __byte_perm((int)x, (int)y, 0x5140) + __funnelshift_l((int)x, (int)y, 7);
    to[7 * count] = __umul24((int)x, (int)y) + __sad((int)x, (int)y, 3) + __mulhi((int)x, (int)y);
}

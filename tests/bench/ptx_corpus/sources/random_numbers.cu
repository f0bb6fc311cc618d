// The generators of cuRAND's headers, each state kept in memory.
#include <curand_kernel.h>

template <class State> __global__ void start(State *states, unsigned long long seed, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        curand_init(seed, i, 0, &states[i]);
}

template <class State> __global__ void uniform(State *states, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    State state = states[i];
    for (int k = 0; k < 16; k++)
        out[k * n + i] = curand_uniform(&state);
    states[i] = state;
}

template <class State> __global__ void normal(State *states, double *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = curand_normal_double(&states[i]);
}

template <class State> __global__ void poisson(State *states, unsigned *out, double mean, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = curand_poisson(&states[i], mean);
}

#define ALL(STATE)                                                                                                     \
    template __global__ void start(STATE *, unsigned long long, int);                                                  \
    template __global__ void uniform(STATE *, float *, int);                                                           \
    template __global__ void normal(STATE *, double *, int);                                                           \
    template __global__ void poisson(STATE *, unsigned *, double, int);

ALL(curandStateXORWOW_t)
ALL(curandStatePhilox4_32_10_t)
ALL(curandStateMRG32k3a_t)

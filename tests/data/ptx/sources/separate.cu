// One part of a program compiled in parts: references that another part resolves.
extern __device__ int defined_elsewhere;
extern __device__ int computed_elsewhere(int);
__device__ int offered = 3;
__device__ int offered_function(int a) { return a + offered; }
template <typename T> __device__ __noinline__ T weak_function(T a) { return a * a; }

extern "C" __global__ void gemm(int *out) { out[0] = offered_function(defined_elsewhere) + weak_function(2); }
extern "C" __global__ void gemm_splitk(int *out) { out[0] = computed_elsewhere(out[1]) + weak_function(2.0f); }

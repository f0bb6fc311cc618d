// Calls: plain, recursive, through pointers and tables, virtual, into the device runtime.
#include <cassert>
#include <cstdio>

__device__ __noinline__ int twice(int a) { return 2 * a; }
__device__ __noinline__ int negate(int a) { return -a; }
__device__ __noinline__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

struct Wide { double x, y, z; };
__device__ __noinline__ Wide scale(Wide w, double by) { return {w.x * by, w.y * by, w.z * by}; }

typedef int (*Operation)(int);
__device__ Operation operations[] = {twice, negate};
__device__ Operation chosen = negate;

struct Shape {
    __device__ virtual float area() const = 0;
    float size;
};
struct Square : Shape { __device__ float area() const override { return size * size; } };
struct Circle : Shape { __device__ float area() const override { return 3.14159f * size * size; } };

extern "C" __global__ void calls_plain(int *out) { out[threadIdx.x] = twice(out[threadIdx.x]); }

extern "C" __global__ void calls_recursive(int *out) { out[threadIdx.x] = factorial(out[threadIdx.x]); }

extern "C" __global__ void calls_struct(Wide *out, double by) { out[threadIdx.x] = scale(out[threadIdx.x], by); }

extern "C" __global__ void calls_table(int *out, int which) { out[threadIdx.x] = operations[which](chosen(out[threadIdx.x])); }

extern "C" __global__ void calls_virtual(float *out, int round) {
    Square square; Circle circle;
    square.size = circle.size = out[threadIdx.x];
    Shape *shape = round ? static_cast<Shape *>(&circle) : &square;
    out[threadIdx.x] = shape->area();
}

extern "C" __global__ void calls_runtime(int **out, int n) {
    printf("block %d: %d of %f\n", blockIdx.x, n, n * 0.5);
    assert(n > 0);
    int *p = static_cast<int *>(malloc(n * sizeof(int)));
    for (int i = 0; i < n; ++i) p[i] = i;
    out[blockIdx.x] = p;
    if (n == 77) free(p);
}

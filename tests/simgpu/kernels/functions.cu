// Calls of device functions that are not inlined.

struct Record {
    int number;
    double weight;
    char letters[3];
};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__device__ __noinline__ Record scaled(Record record, int factor) {
    record.number += factor;
    record.weight *= factor;
    record.letters[1] = factor;
    return record;
}

extern "C" __global__ void structures(int *output, Record record) {
    int i = threadIdx.x;
    Record mine = scaled(record, i);
    output[i] = mine.number + (int)mine.weight + mine.letters[i % 3];
}

extern "C" __global__ void recursion(int *output) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    output[i] = fibonacci(i % 11);
}

// A stack array in each frame of the recursion.
__device__ __noinline__ int digits(int n, int *sum) {
    int local[4];
    for (int k = 0; k < 4; k++) local[k] = n * (k + 1);
    int below = n > 0 ? digits(n - 1, &local[n & 3]) : 0;
    *sum += local[(n + 1) & 3];
    return below + local[n & 3];
}

extern "C" __global__ void stack_frames(int *output) {
    int i = threadIdx.x, sum = i;
    output[2 * i] = digits(i % 7, &sum);
    output[2 * i + 1] = sum;
}

typedef int (*Operation)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ Operation operations[3] = {add, subtract, multiply};

extern "C" __global__ void pointers(int *output, const int *choice) {
    int i = threadIdx.x;
    output[i] = operations[choice[i]](i, 7);
}

__device__ __noinline__ void leave(int *output, int i) {
    if (i % 3 == 0) asm volatile("exit;");
    output[i] += 1;
}

extern "C" __global__ void exit_in_function(int *output) {
    int i = threadIdx.x;
    output[i] = 10;
    leave(output, i);
    output[i] += 100;
}

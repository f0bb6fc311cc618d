// A driver-API program: loads a PTX file, runs saxpy and a reduction, and checks both results.
// usage: host FOLDER   (with saxpy.ptx and reduction.ptx in it)
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct context *CUcontext;
typedef struct module *CUmodule;
typedef struct function *CUfunction;
typedef struct stream *CUstream;
typedef struct event *CUevent;

int cuInit(unsigned flags);
int cuCtxCreate_v2(CUcontext *context, unsigned flags, int device);
int cuCtxDestroy_v2(CUcontext context);
int cuModuleLoad(CUmodule *module, const char *path);
int cuModuleUnload(CUmodule module);
int cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoDAsync_v2(uint64_t target, const void *source, size_t bytes, CUstream stream);
int cuMemcpyDtoHAsync_v2(void *target, uint64_t source, size_t bytes, CUstream stream);
int cuMemsetD8_v2(uint64_t target, unsigned char value, size_t bytes);
int cuStreamCreate(CUstream *stream, unsigned flags);
int cuStreamSynchronize(CUstream stream);
int cuStreamDestroy_v2(CUstream stream);
int cuEventCreate(CUevent *event, unsigned flags);
int cuEventRecord(CUevent event, CUstream stream);
int cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
int cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,
                   void **extra);

enum { COUNT = 10000, BLOCK = 256, BLOCKS = (COUNT + BLOCK - 1) / BLOCK };

static float x[COUNT], y[COUNT];

#define CHECK(call)                                                  \
    do {                                                             \
        int status = (call);                                         \
        if (status) {                                                \
            fprintf(stderr, "line %d: error %d\n", __LINE__, status); \
            exit(1);                                                 \
        }                                                            \
    } while (0)

static CUfunction load(const char *folder, const char *name, CUmodule *module) {
    char path[4096];
    CUfunction function;
    snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
    CHECK(cuModuleLoad(module, path));
    CHECK(cuModuleGetFunction(&function, *module, name));
    return function;
}

static void run_saxpy(CUfunction saxpy, CUstream stream, uint64_t device_x, uint64_t device_y) {
    float a = 3;
    int count = COUNT;
    void *parameters[] = {&device_y, &device_x, &a, &count};
    CHECK(cuLaunchKernel(saxpy, BLOCKS, 1, 1, BLOCK, 1, 1, 0, stream, parameters, NULL));
    CHECK(cuMemcpyDtoHAsync_v2(y, device_y, sizeof y, stream));
    CHECK(cuStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++) {
        if (y[i] != 3.0f * (float)(i % 7) + 1) exit(2);
    }
    puts("saxpy ok");
}

// The parameters as one buffer.
static void run_reduction(CUfunction reduction, CUstream stream, uint64_t input) {
    struct {
        uint64_t total, input;
        int count;
    } buffer = {.input = input, .count = COUNT};
    size_t bytes = sizeof buffer;
    void *extra[] = {(void *)1, &buffer, (void *)2, &bytes, NULL};
    float total, expected = 0;
    CHECK(cuMemAlloc_v2(&buffer.total, sizeof total));
    CHECK(cuMemsetD8_v2(buffer.total, 0, sizeof total));
    CHECK(cuLaunchKernel(reduction, 4, 1, 1, BLOCK, 1, 1, 0, stream, NULL, extra));
    CHECK(cuMemcpyDtoHAsync_v2(&total, buffer.total, sizeof total, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemFree_v2(buffer.total));
    for (int i = 0; i < COUNT; i++) expected += x[i];  // whole numbers: exact in any order
    if (total != expected) exit(3);
    puts("reduction ok");
}

int main(int count, char **arguments) {
    if (count != 2) return 64;
    CUcontext context;
    CUmodule saxpy_module, reduction_module;
    CUstream stream;
    CUevent start, end;
    uint64_t device_x, device_y;
    float milliseconds;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuEventCreate(&start, 0));
    CHECK(cuEventCreate(&end, 0));
    CUfunction saxpy = load(arguments[1], "saxpy", &saxpy_module);
    CUfunction reduction = load(arguments[1], "reduction", &reduction_module);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 7);
        y[i] = 1;
    }
    CHECK(cuMemAlloc_v2(&device_x, sizeof x));
    CHECK(cuMemAlloc_v2(&device_y, sizeof y));
    CHECK(cuMemcpyHtoDAsync_v2(device_x, x, sizeof x, stream));
    CHECK(cuMemcpyHtoDAsync_v2(device_y, y, sizeof y, stream));
    CHECK(cuEventRecord(start, stream));
    run_saxpy(saxpy, stream, device_x, device_y);
    CHECK(cuEventRecord(end, stream));
    CHECK(cuEventElapsedTime(&milliseconds, start, end));
    if (milliseconds <= 0) return 4;
    run_reduction(reduction, stream, device_x);
    CHECK(cuMemFree_v2(device_x));
    CHECK(cuMemFree_v2(device_y));
    CHECK(cuModuleUnload(saxpy_module));
    CHECK(cuModuleUnload(reduction_module));
    CHECK(cuStreamDestroy_v2(stream));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}

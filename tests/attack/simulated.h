/* The driver as programs here need it that run on the simulated GPU. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxCreate_v4(void **context, void *parameters, unsigned flags, int device);
int cuCtxDestroy_v2(void *context);
int cuCtxSetCurrent(void *context);
int cuCtxSynchronize(void);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLibraryLoadData(void **library, const void *image, int *options, void **values, unsigned n, int *more, void **its,
                      unsigned n_more);
int cuLibraryUnload(void *library);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuKernelGetFunction(void **function, void *kernel);
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra);
int cuMemGetInfo_v2(size_t *unused, size_t *total);
int cuMemAlloc_v2(uint64_t *memory, size_t size);
int cuMemAllocAsync(uint64_t *memory, size_t size, void *stream);
int cuMemAllocManaged(uint64_t *memory, size_t size, unsigned flags);
int cuMemAllocPitch_v2(uint64_t *memory, size_t *pitch, size_t width, size_t height, unsigned element);
int cuMemAllocHost_v2(void **memory, size_t size);
int cuMemFreeHost(void *memory);
int cuMemFree_v2(uint64_t memory);
int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t size);
int cuMemcpyDtoH_v2(void *to, uint64_t memory, size_t size);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuEventCreate(void **event, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuGraphInstantiate_v2(void **executable, void *graph, void **node, char *log, size_t size);
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
int cuGraphUpload(void *executable, void *stream);
int cuGraphLaunch(void *executable, void *stream);
int cuGraphExecDestroy(void *executable);
int cuGraphDestroy(void *graph);

#define MAY_BE_UNUSED __attribute__((unused))

#define CHECK(call)                                                               \
    do {                                                                          \
        int result_ = (call);                                                     \
        if (result_) {                                                            \
            fprintf(stderr, "line %d: %s: error %d\n", __LINE__, #call, result_); \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

/* Adds 1 to the word that its parameter points at. */
static const char ADD[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry add(.param .u64 word)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n"
                          "ld.param.u64 %rd1, [word];\ncvta.to.global.u64 %rd2, %rd1;\n"
                          "atom.global.add.u32 %r1, [%rd2], 1;\nret;\n}\n";

MAY_BE_UNUSED static int launch(void *function, void *stream, uint64_t word)
{
    void *parameters[] = {&word};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* In the current context. */
MAY_BE_UNUSED static void *loaded(void **module)
{
    void *function;
    CHECK(cuModuleLoadData(module, ADD));
    CHECK(cuModuleGetFunction(&function, *module, "add"));
    return function;
}

MAY_BE_UNUSED static uint64_t new_word(void)
{
    uint64_t word;
    CHECK(cuMemAlloc_v2(&word, 4));
    CHECK(cuMemsetD8_v2(word, 0, 4));
    return word;
}

MAY_BE_UNUSED static unsigned value_of(uint64_t word)
{
    unsigned value;
    CHECK(cuMemcpyDtoH_v2(&value, word, 4));
    return value;
}

MAY_BE_UNUSED static void *captured(void *function, uint64_t word)
{
    void *stream, *graph;
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamBeginCapture_v2(stream, 2));
    CHECK(launch(function, stream, word));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuStreamDestroy_v2(stream));
    return graph;
}

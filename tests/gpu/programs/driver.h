// The few driver functions the test programs use, found by dlsym: builds with a C compiler only.
#pragma once
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream, *CUevent, *CUlibrary, *CUkernel;

static void *driver_library;

static void *driver_symbol(const char *name)
{
    if (!driver_library)
        driver_library = dlopen("libcuda.so.1", RTLD_NOW);
    void *address = driver_library ? dlsym(driver_library, name) : NULL;
    if (!address) {
        fprintf(stderr, "no %s in libcuda.so.1: %s\n", name, dlerror());
        exit(3);
    }
    return address;
}

#define DRIVER(name, ...) ((CUresult (*)(__VA_ARGS__))driver_symbol(#name))
#define CHECK(call)                                                           \
    do {                                                                      \
        CUresult status = (call);                                             \
        if (status) {                                                         \
            fprintf(stderr, "%s:%d: error %d\n", __FILE__, __LINE__, status); \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

static double now_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static CUcontext make_context(void)
{
    CUcontext context;
    CUdevice device;
    CHECK(DRIVER(cuInit, unsigned)(0));
    CHECK(DRIVER(cuDeviceGet, CUdevice *, int)(&device, 0));
    CHECK(DRIVER(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)(&context, device));
    CHECK(DRIVER(cuCtxSetCurrent, CUcontext)(context));
    return context;
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr pointer;
    CHECK(DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&pointer, bytes));
    return pointer;
}

static CUmodule load(const char *path)
{
    CUmodule module;
    CHECK(DRIVER(cuModuleLoad, CUmodule *, const char *)(&module, path));
    return module;
}

static CUfunction function(CUmodule module, const char *name)
{
    CUfunction handle;
    CHECK(DRIVER(cuModuleGetFunction, CUfunction *, CUmodule, const char *)(&handle, module, name));
    return handle;
}

static CUresult launch(CUfunction f, unsigned grid, unsigned block, CUstream stream, void **params, void **extra)
{
    static CUresult (*real)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                            void **, void **);
    if (!real)
        *(void **)&real = driver_symbol("cuLaunchKernel");
    return real(f, grid, 1, 1, block, 1, 1, 0, stream, params, extra);
}

static void synchronize(void)
{
    CHECK(DRIVER(cuCtxSynchronize, void)());
}
static void to_host(void *host, CUdeviceptr device, size_t bytes)
{
    CHECK(DRIVER(cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t)(host, device, bytes));
}
static void to_device(CUdeviceptr device, const void *host, size_t bytes)
{
    CHECK(DRIVER(cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t)(device, host, bytes));
}

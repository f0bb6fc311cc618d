/* Wrappers of the functions that allocate and free memory: a line in the log each. */
#include "event_log.h"
#include "lifetime.h"
#include "real.h"

typedef unsigned long long ull;

static CUresult allocated(const char *function, CUresult result, const CUdeviceptr *memory, size_t size)
{
    if (hook_active())
        event_log("[mem] %s %d dptr %llx bytesize %zu\n", function, result,
                  result == CUDA_SUCCESS ? (ull)*memory : 0, size);
    return result;
}

static CUresult allocated_host(const char *function, CUresult result, void **memory, size_t size)
{
    if (hook_active())
        event_log("[mem] %s %d dptr %llx bytesize %zu\n", function, result,
                  result == CUDA_SUCCESS ? (ull)(uintptr_t)*memory : 0, size);
    return result;
}

static CUresult freed(const char *function, CUresult result, ull memory)
{
    if (hook_active())
        event_log("[mem] %s %d dptr %llx\n", function, result, memory);
    return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t size)
{
    return allocated("cuMemAlloc_v2", REAL_OR_NOT_FOUND(cuMemAlloc_v2, memory, size), memory, size);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *memory, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    CUresult result = REAL_OR_NOT_FOUND(cuMemAllocPitch_v2, memory, pitch, width, height, element);
    return allocated("cuMemAllocPitch_v2", result, memory, result == CUDA_SUCCESS ? *pitch * height : width * height);
}

CUresult cuMemAllocManaged(CUdeviceptr *memory, size_t size, unsigned int flags)
{
    return allocated("cuMemAllocManaged", REAL_OR_NOT_FOUND(cuMemAllocManaged, memory, size, flags), memory, size);
}

CUresult cuMemAllocAsync(CUdeviceptr *memory, size_t size, CUstream stream)
{
    return allocated("cuMemAllocAsync", REAL_OR_NOT_FOUND(cuMemAllocAsync, memory, size, stream), memory, size);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *memory, size_t size, CUstream stream)
{
    return allocated("cuMemAllocAsync_ptsz", REAL_OR_NOT_FOUND(cuMemAllocAsync_ptsz, memory, size, stream), memory,
                     size);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *memory, size_t size, CUmemoryPool pool, CUstream stream)
{
    return allocated("cuMemAllocFromPoolAsync", REAL_OR_NOT_FOUND(cuMemAllocFromPoolAsync, memory, size, pool, stream),
                     memory, size);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *memory, size_t size, CUmemoryPool pool, CUstream stream)
{
    return allocated("cuMemAllocFromPoolAsync_ptsz",
                     REAL_OR_NOT_FOUND(cuMemAllocFromPoolAsync_ptsz, memory, size, pool, stream), memory, size);
}

CUresult cuMemAllocHost_v2(void **memory, size_t size)
{
    return allocated_host("cuMemAllocHost_v2", REAL_OR_NOT_FOUND(cuMemAllocHost_v2, memory, size), memory, size);
}

CUresult cuMemHostAlloc(void **memory, size_t size, unsigned int flags)
{
    return allocated_host("cuMemHostAlloc", REAL_OR_NOT_FOUND(cuMemHostAlloc, memory, size, flags), memory, size);
}

CUresult cuMemFree_v2(CUdeviceptr memory)
{
    return freed("cuMemFree_v2", REAL_OR_NOT_FOUND(cuMemFree_v2, memory), memory);
}

CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream)
{
    return freed("cuMemFreeAsync", REAL_OR_NOT_FOUND(cuMemFreeAsync, memory, stream), memory);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr memory, CUstream stream)
{
    return freed("cuMemFreeAsync_ptsz", REAL_OR_NOT_FOUND(cuMemFreeAsync_ptsz, memory, stream), memory);
}

CUresult cuMemFreeHost(void *memory)
{
    return freed("cuMemFreeHost", REAL_OR_NOT_FOUND(cuMemFreeHost, memory), (ull)(uintptr_t)memory);
}

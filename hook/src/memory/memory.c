/* Wrappers of the functions that allocate and free memory: a line in the log each, and the list of what
 * is allocated. Variables of modules join the list when the program asks for their address, which it may pass to any
 * kernel. A region is taken off the list before it is freed, for it may immediately be allocated again. */
#include "allocations.h"
#include "event_log.h"
#include "hook_state.h"
#include "memory_pressure.h"
#include "real.h"

typedef unsigned long long ull;

static CUresult allocated(enum allocation_kind kind, const char *function, CUresult result, ull memory, size_t size)
{
    if (!hook_active())
        return result;
    event_log_often("[mem] %s %d dptr %llx bytesize %zu\n", function, result, memory, size);
    allocations_add(kind, memory, size);
    return result;
}

/* Calls the driver's function, whose first argument receives the address. */
#define ALLOCATE(kind, function, memory, size, ...)                                                            \
    do {                                                                                                       \
        CUresult result = WITH_MEMORY(function, memory, __VA_ARGS__);                                          \
        return allocated(kind, #function, result, result == CUDA_SUCCESS ? (ull)(uintptr_t)*memory : 0, size); \
    } while (0)

#define FREE(function, memory, ...)                                                                \
    do {                                                                                           \
        allocations_remove((ull)(uintptr_t)memory);                                                \
        CUresult result = REAL_OR_NOT_FOUND(function, __VA_ARGS__);                                \
        if (hook_active())                                                                         \
            event_log_often("[mem] %s %d dptr %llx\n", #function, result, (ull)(uintptr_t)memory); \
        return result;                                                                             \
    } while (0)

CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t size)
{
    ALLOCATE(ALLOCATION_DEVICE, cuMemAlloc_v2, memory, size, size);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *memory, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    ALLOCATE(ALLOCATION_DEVICE, cuMemAllocPitch_v2, memory, (result ? width : *pitch) * height, pitch, width, height,
             element);
}

CUresult cuMemAllocManaged(CUdeviceptr *memory, size_t size, unsigned int flags)
{
    ALLOCATE(ALLOCATION_MANAGED, cuMemAllocManaged, memory, size, size, flags);
}

CUresult cuMemAllocAsync(CUdeviceptr *memory, size_t size, CUstream stream)
{
    ALLOCATE(ALLOCATION_DEVICE, cuMemAllocAsync, memory, size, size, stream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *memory, size_t size, CUstream stream)
{
    ALLOCATE(ALLOCATION_DEVICE, cuMemAllocAsync_ptsz, memory, size, size, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *memory, size_t size, CUmemoryPool pool, CUstream stream)
{
    ALLOCATE(ALLOCATION_DEVICE, cuMemAllocFromPoolAsync, memory, size, size, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *memory, size_t size, CUmemoryPool pool, CUstream stream)
{
    ALLOCATE(ALLOCATION_DEVICE, cuMemAllocFromPoolAsync_ptsz, memory, size, size, pool, stream);
}

CUresult cuMemAllocHost_v2(void **memory, size_t size)
{
    ALLOCATE(ALLOCATION_HOST, cuMemAllocHost_v2, memory, size, size);
}

CUresult cuMemHostAlloc(void **memory, size_t size, unsigned int flags)
{
    ALLOCATE(ALLOCATION_HOST, cuMemHostAlloc, memory, size, size, flags);
}

CUresult cuMemFree_v2(CUdeviceptr memory)
{
    FREE(cuMemFree_v2, memory, memory);
}

CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream)
{
    FREE(cuMemFreeAsync, memory, memory, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr memory, CUstream stream)
{
    FREE(cuMemFreeAsync_ptsz, memory, memory, stream);
}

CUresult cuMemFreeHost(void *memory)
{
    FREE(cuMemFreeHost, memory, memory);
}

/* Memory without an address, which cuMemMap gives it. */
CUresult cuMemCreate(unsigned long long *handle, size_t size, const void *properties, unsigned long long flags)
{
    return WITH_MEMORY(cuMemCreate, handle, size, properties, flags);
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, unsigned long long handle, unsigned long long flags)
{
    allocations_note_mapping();
    const CUresult result = WITH_MEMORY(cuMemMap, address, size, offset, handle, flags);
    if (hook_active() && result == CUDA_SUCCESS)
        allocations_add(ALLOCATION_MAPPED, address, size);
    return result;
}

/* A range may have several mappings. */
CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    allocations_remove_range(address, size);
    return REAL_OR_NOT_FOUND(cuMemUnmap, address, size);
}

/* The size is asked for again: the program may not want it. */
#define GET_VARIABLE(kind, function, memory, size, owner, name)                    \
    do {                                                                           \
        CUresult result = WITH_MEMORY(function, memory, size, owner, name);        \
        CUdeviceptr at;                                                            \
        size_t bytes;                                                              \
        if (result == CUDA_SUCCESS && hook_active() &&                             \
            REAL_OR_NOT_FOUND(function, &at, &bytes, owner, name) == CUDA_SUCCESS) \
            allocations_add_variable(kind, at, bytes, owner);                      \
        return result;                                                             \
    } while (0)

CUresult cuModuleGetGlobal_v2(CUdeviceptr *memory, size_t *size, CUmodule module, const char *name)
{
    GET_VARIABLE(ALLOCATION_DEVICE, cuModuleGetGlobal_v2, memory, size, module, name);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *memory, size_t *size, CUlibrary library, const char *name)
{
    GET_VARIABLE(ALLOCATION_DEVICE, cuLibraryGetGlobal, memory, size, library, name);
}

CUresult cuLibraryGetManaged(CUdeviceptr *memory, size_t *size, CUlibrary library, const char *name)
{
    GET_VARIABLE(ALLOCATION_MANAGED, cuLibraryGetManaged, memory, size, library, name);
}

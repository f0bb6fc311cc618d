/* Allocation of device memory and of pinned host memory. Both are in the mapping that the server shares, so kernels
 * reach both by the addresses that the program has. */

#include <inttypes.h>
#include <stdlib.h>

#include "capture.h"
#include "current.h"
#include "machine.h"
#include "memory.h"
#include "report.h"
#include "streams.h"

void memory_report(const char *call, CUdeviceptr address, size_t bytes)
{
    const struct block *block = memory_block(address);
    if (block && journal_is_on())
        report("%s: %zu bytes at 0x%" PRIx64 " are not inside the allocation of %" PRIu64 " bytes at 0x%" PRIx64
               ": the call returns CUDA_ERROR_INVALID_VALUE",
               call, bytes, (uint64_t)address, block->requested, block->address);
}

static CUresult allocate(struct heap *heap, enum block_use use, size_t bytes, CUdeviceptr *address)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!address || !bytes)
        return leave(CUDA_ERROR_INVALID_VALUE);
    struct block *block = heap_allocate(heap, bytes, use, context);
    if (!block)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    *address = block->address;
    return leave(CUDA_SUCCESS);
}

/* `address` must be the start of a block: freeing twice, or from the middle, is an error. */
static CUresult release(struct heap *heap, uint64_t address)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!address)
        return leave(CUDA_SUCCESS);
    struct block *block = heap_find(heap, address);
    if (!block || block->address != address || block->use == BLOCK_VARIABLE || block->use == BLOCK_VIRTUAL)
        return leave(CUDA_ERROR_INVALID_VALUE);
    heap_release(heap, block);
    return leave(CUDA_SUCCESS);
}

API cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    return allocate(&driver.device_heap, BLOCK_DEVICE, bytes, address);
}

API cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    CUresult result = allocate(&driver.device_heap, BLOCK_DEVICE, bytes, address);
    if (result || !stream_exists(stream))
        return result;
    driver_lock();
    struct work work = {.kind = &memory_work, .of.memory = *address};
    return leave(capture_of(stream) ? capture_work(stream, &work) : CUDA_SUCCESS);
}
PER_THREAD_STREAM(cuMemAllocAsync);

API cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
    if (flags != 1 && flags != 2)
        return CUDA_ERROR_INVALID_VALUE; /* attached to every stream, or to the host */
    return allocate(&driver.device_heap, BLOCK_MANAGED, bytes, address);
}

API cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element_bytes)
{
    bool element_fits = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
    if (!pitch || !width || !height || !element_fits || width > SIZE_MAX - TEXTURE_PITCH_BYTES) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t row = (width + TEXTURE_PITCH_BYTES - 1) / TEXTURE_PITCH_BYTES * TEXTURE_PITCH_BYTES;
    if (height > SIZE_MAX / row)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = allocate(&driver.device_heap, BLOCK_DEVICE, row * height, address);
    if (!result)
        *pitch = row;
    return result;
}

API cuMemFree_v2(CUdeviceptr address)
{
    return release(&driver.device_heap, address);
}

API cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    (void)stream;
    return release(&driver.device_heap, address);
}
PER_THREAD_STREAM(cuMemFreeAsync);

static CUresult allocate_host(void **pointer, size_t bytes)
{
    CUdeviceptr address = 0;
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate(&driver.host_heap, BLOCK_HOST, bytes, &address);
    if (!result)
        *pointer = (void *)address;
    return result;
}

API cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    return flags > 7 ? CUDA_ERROR_INVALID_VALUE : allocate_host(pointer, bytes);
}

API cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    return allocate_host(pointer, bytes);
}
API cuMemFreeHost(void *pointer)
{
    return release(&driver.host_heap, (uintptr_t)pointer);
}

API cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned flags)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    bool ours = heap_find(&driver.host_heap, (uintptr_t)pointer) != NULL;
    if (!address || flags || !ours)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *address = (uintptr_t)pointer;
    return leave(CUDA_SUCCESS);
}

API cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!unused || !total)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *unused = driver.device_heap.size - driver.device_heap.used;
    *total = driver.device_heap.size;
    return leave(CUDA_SUCCESS);
}

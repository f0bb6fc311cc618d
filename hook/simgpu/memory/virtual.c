/* Reserved addresses and the memory mapped there. Memory lies in the mapping that the server shares, at the offset that
 * its address has: an allocation is mapped once, and addresses are those of the mapping. */

#include <stdlib.h>

#include "current.h"
#include "memory.h"
#include "report.h"

static const size_t GRANULARITY = HEAP_LARGE_ALIGNMENT;

struct physical {
    size_t bytes;
    bool is_mapped; /* now or before */
};

static bool is_whole(uint64_t bytes)
{
    return bytes && bytes % GRANULARITY == 0;
}

/* The half of the mapping that an address is in. */
static struct heap *heap_of(CUdeviceptr address)
{
    const bool on_host =
        address >= driver.host_heap.address && address - driver.host_heap.address < driver.host_heap.size;
    return on_host ? &driver.host_heap : &driver.device_heap;
}

static bool is_supported(const CUmemAllocationProp *properties)
{
    return properties && properties->type == ALLOCATION_PINNED && properties->location.type == LOCATION_DEVICE &&
           properties->location.id == 0;
}

API cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties, int option)
{
    (void)option;
    if (!granularity || !is_supported(properties))
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

/* `wanted` is a hint, as in the real driver: where it is not free, other addresses are reserved. */
API cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted,
                        unsigned long long flags)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (!address || !is_whole(bytes) || wanted % GRANULARITY || alignment > GRANULARITY || flags)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *address = wanted ? heap_reserve(heap_of(wanted), wanted, bytes) : 0;
    if (!*address)
        *address = heap_reserve(&driver.device_heap, 0, bytes);
    return leave(*address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

/* Changes a range from one use to another. */
static CUresult change(CUdeviceptr address, size_t bytes, enum block_use from, enum block_use to)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    const bool changed = is_whole(bytes) && heap_change(heap_of(address), address, bytes, from, to);
    return leave(changed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

API cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    return change(address, bytes, BLOCK_RESERVED, BLOCK_FREE);
}

API cuMemCreate(unsigned long long *handle, size_t bytes, const CUmemAllocationProp *properties,
                unsigned long long flags)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (!handle || !is_whole(bytes) || !is_supported(properties) || flags)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (bytes > driver.device_heap.size - driver.device_heap.used)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    struct physical *physical = calloc(1, sizeof *physical);
    void *made = physical ? handle_create(HANDLE_MEMORY, physical) : NULL;
    if (!made) {
        free(physical);
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    physical->bytes = bytes;
    *handle = (uintptr_t)made;
    return leave(CUDA_SUCCESS);
}

static struct physical *physical_of(unsigned long long handle)
{
    return handle_object(HANDLE_MEMORY, (void *)(uintptr_t)handle);
}

/* A mapping stays until it is unmapped. */
API cuMemRelease(unsigned long long handle)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    struct physical *physical = physical_of(handle);
    if (!physical)
        return leave(CUDA_ERROR_INVALID_VALUE);
    free(physical);
    handle_destroy((void *)(uintptr_t)handle);
    return leave(CUDA_SUCCESS);
}

API cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, unsigned long long handle, unsigned long long flags)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    struct physical *physical = physical_of(handle);
    if (!physical || !is_whole(bytes) || bytes > physical->bytes || offset || flags)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (physical->is_mapped) {
        report("cuMemMap: the simulated GPU maps each handle of cuMemCreate only once. Call cuMemCreate for each"
               " mapping");
        return leave(CUDA_ERROR_NOT_SUPPORTED);
    }
    physical->is_mapped = heap_change(heap_of(address), address, bytes, BLOCK_RESERVED, BLOCK_MAPPED);
    return leave(physical->is_mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

API cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    if (change(address, bytes, BLOCK_VIRTUAL, BLOCK_RESERVED) == CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return change(address, bytes, BLOCK_MAPPED, BLOCK_RESERVED); /* no access was set */
}

API cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const CUmemLocation *location = &access[i].location;
        if (location->type == LOCATION_DEVICE && location->id == 0 && access[i].flags == ACCESS_READ_WRITE)
            return change(address, bytes, BLOCK_MAPPED, BLOCK_VIRTUAL);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

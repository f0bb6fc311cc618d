#include "resident.h"

#include "buffers.h"
#include "real.h"
#include "reasons.h"
#include "streams.h"

size_t resident_record_size(const struct map *map)
{
    return ((size_t)map->record + RESIDENT_ALIGNMENT - 1) / RESIDENT_ALIGNMENT * RESIDENT_ALIGNMENT;
}

size_t resident_slot_size(const struct kernel_probe *probe)
{
    size_t size = 0;
    for (size_t i = 0; i < probe->n_maps; i++)
        size += probe->maps[i].layout == MAP_RESIDENT ? resident_record_size(&probe->maps[i]) : 0;
    return size;
}

/* Zeros, so that no warp has a slot. 0 if the driver refuses. */
static CUdeviceptr allocate(const struct pool *pool, size_t size)
{
    CUdeviceptr memory = 0;
    const int mode = capture_mode_relax();
    CUresult result = REAL_OR_NOT_FOUND(cuMemAlloc_v2, &memory, size);
    if (result == CUDA_SUCCESS) {
        result = REAL_OR_NOT_FOUND(cuMemsetD8Async, memory, 0, size, pool->stream);
        if (result == CUDA_SUCCESS)
            result = REAL_OR_NOT_FOUND(cuStreamSynchronize, pool->stream);
        if (result != CUDA_SUCCESS)
            REAL_OR_NOT_FOUND(cuMemFree_v2, memory);
    }
    capture_mode_restore(mode);
    return result == CUDA_SUCCESS ? memory : 0;
}

/* Two threads may make one each; the second of them is freed. */
static void make(struct pool *pool, size_t size)
{
    const CUdeviceptr memory = allocate(pool, size);
    CUdeviceptr unused = 0;
    buffers_lock();
    if (pool->resident || !pool->context)
        unused = memory;
    else {
        pool->resident_size = size;
        pool->resident = memory;
    }
    buffers_unlock();
    if (unused)
        REAL_OR_NOT_FOUND(cuMemFree_v2, unused);
}

const struct reason *resident_table(struct pool *pool, const struct kernel_probe *probe, CUdeviceptr *table)
{
    buffers_lock();
    *table = pool->resident;
    buffers_unlock();
    if (*table)
        return NULL;
    make(pool, RESIDENT_SLOTS * resident_slot_size(probe));
    buffers_lock();
    *table = pool->resident;
    buffers_unlock();
    return *table ? NULL : reason(PROBE_MEMORY);
}

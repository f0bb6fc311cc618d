#define _GNU_SOURCE
#include "replay.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "allocations.h"
#include "real.h"
#include "reasons.h"
#include "streams.h"

/* A region of the program and our copy of it. */
struct region {
    CUdeviceptr memory, copy;
    size_t size;
};

struct snapshot {
    size_t n, capacity;
    struct region *regions;
};

/* Memory that a snapshot leaves free on the device: the driver allocates for launches too, such as stacks. */
enum { MARGIN_BYTES = 64 << 20 };

/* True if kernels reach all memory of the process, even memory that the driver does not know. */
static bool kernels_reach_host(void)
{
    CUdevice device;
    int reach = 0;
    return REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) == CUDA_SUCCESS &&
           REAL_OR_NOT_FOUND(cuDeviceGetAttribute, &reach, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device) ==
               CUDA_SUCCESS &&
           reach;
}

static bool is_mapped(CUdeviceptr value)
{
    unsigned char resident;
    uintptr_t page = (uintptr_t)value & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    return mincore((void *)page, 1, &resident) == 0;
}

static const struct reason *unsafe_stranger(CUdeviceptr value)
{
    int type;
    if (REAL_OR_NOT_FOUND(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, value) == CUDA_SUCCESS)
        return reason(POINTER_OF_UNKNOWN_ORIGIN);
    return kernels_reach_host() && is_mapped(value) ? reason(POINTER_TO_HOST) : NULL;
}

/* Memory that a parameter points at must be memory that will be saved. */
static const struct reason *unsafe_pointer(CUdeviceptr value, CUcontext context)
{
    const struct allocation *allocation = allocations_find(value);
    if (!allocation)
        return unsafe_stranger(value);
    if (allocation->kind == ALLOCATION_MANAGED)
        return reason(POINTER_TO_MANAGED);
    if (allocation->kind == ALLOCATION_HOST)
        return reason(POINTER_TO_HOST);
    return allocation->context == context ? NULL : reason(POINTER_TO_OTHER_CONTEXT);
}

static const struct reason *unsafe_parameter(const struct kernel *kernel, void *const *parameters)
{
    CUcontext context = NULL;
    const struct reason *reason = NULL;
    REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context);
    allocations_lock();
    for (size_t i = 0; i < kernel->n_parameters; i++) {
        CUdeviceptr value;
        for (size_t at = 0; at + sizeof value <= kernel->parameters[i].size && !reason; at += sizeof value) {
            memcpy(&value, (const char *)parameters[i] + at, sizeof value);
            reason = unsafe_pointer(value, context);
        }
    }
    allocations_unlock();
    return reason;
}

const struct reason *replay_obstacle(const struct launch *launch, const struct kernel_probe *probe,
                                     void *const *parameters)
{
    const struct kernel *kernel = probe->kernel;
    if (probe->no_replay)
        return probe->no_replay;
    if (streams_any_capture()) /* which waiting for the whole context would end */
        return reason(CAPTURE_ELSEWHERE);
    if (launch_is_cooperative(launch))
        return reason(COOPERATIVE);
    if (allocations_any_mapping())
        return reason(OWN_MAPPING);
    if (!kernel->parameters_known)
        return reason(PARAMETERS_UNKNOWN);
    return unsafe_parameter(kernel, parameters);
}

static bool add_region(struct snapshot *snapshot, CUdeviceptr memory, size_t size)
{
    if (snapshot->n == snapshot->capacity) {
        size_t capacity = snapshot->capacity ? snapshot->capacity * 2 : 64;
        struct region *grown = realloc(snapshot->regions, capacity * sizeof *grown);
        if (!grown)
            return false;
        snapshot->regions = grown;
        snapshot->capacity = capacity;
    }
    snapshot->regions[snapshot->n++] = (struct region){.memory = memory, .size = size};
    return true;
}

static bool list_regions(struct snapshot *snapshot, const struct allocation *allocations,
                         const struct kernel_probe *probe, const struct variant *variant)
{
    CUcontext context = NULL;
    bool listed = REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) == CUDA_SUCCESS;
    for (const struct allocation *a = allocations; a && listed; a = a->next)
        if (a->kind == ALLOCATION_DEVICE && a->context == context)
            listed = add_region(snapshot, a->memory, a->size);
    for (size_t i = 0; i < probe->n_globals && listed; i++)
        listed = add_region(snapshot, variant->globals[i], variant->global_sizes[i]);
    return listed;
}

static bool fits(const struct snapshot *snapshot)
{
    size_t available = 0, total = 0, wanted = MARGIN_BYTES;
    for (size_t i = 0; i < snapshot->n; i++)
        wanted += snapshot->regions[i].size;
    return REAL_OR_NOT_FOUND(cuMemGetInfo_v2, &available, &total) == CUDA_SUCCESS && wanted <= available;
}

static bool copy_regions(struct snapshot *snapshot, CUstream stream)
{
    for (size_t i = 0; i < snapshot->n; i++) {
        struct region *region = &snapshot->regions[i];
        if (REAL_OR_NOT_FOUND(cuMemAlloc_v2, &region->copy, region->size) != CUDA_SUCCESS) {
            region->copy = 0;
            return false;
        }
        if (REAL_OR_NOT_FOUND(cuMemcpyDtoDAsync_v2, region->copy, region->memory, region->size, stream) != CUDA_SUCCESS)
            return false;
    }
    return REAL_OR_NOT_FOUND(cuStreamSynchronize, stream) == CUDA_SUCCESS;
}

struct snapshot *snapshot_take(const struct kernel_probe *probe, const struct variant *variant, CUstream stream)
{
    /* First of all, for what is under way may need the other threads before it ends. */
    struct snapshot *snapshot =
        REAL_OR_NOT_FOUND(cuCtxSynchronize) == CUDA_SUCCESS ? calloc(1, sizeof *snapshot) : NULL;
    if (!snapshot)
        return NULL;
    if (list_regions(snapshot, allocations_lock(), probe, variant) && fits(snapshot) && copy_regions(snapshot, stream))
        return snapshot;
    snapshot_free(snapshot);
    return NULL;
}

CUresult snapshot_restore(const struct snapshot *snapshot, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < snapshot->n && result == CUDA_SUCCESS; i++) {
        const struct region *region = &snapshot->regions[i];
        result = REAL_OR_NOT_FOUND(cuMemcpyDtoDAsync_v2, region->memory, region->copy, region->size, stream);
    }
    return result;
}

void snapshot_free(struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n; i++)
        if (snapshot->regions[i].copy)
            REAL_OR_NOT_FOUND(cuMemFree_v2, snapshot->regions[i].copy);
    allocations_unlock();
    free(snapshot->regions);
    free(snapshot);
}

#include "allocations.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "real.h"
#include "settings.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;
static atomic_bool mapping_seen;

void allocations_add(enum allocation_kind kind, CUdeviceptr memory, size_t size)
{
    struct allocation *allocation = settings.benchmark && memory ? calloc(1, sizeof *allocation) : NULL;
    if (!allocation)
        return;
    allocation->kind = kind;
    allocation->memory = memory;
    allocation->size = size;
    REAL_OR_NOT_FOUND(cuCtxGetCurrent, &allocation->context);
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &allocation->device) != CUDA_SUCCESS)
        allocation->device = -1;
    pthread_mutex_lock(&mutex);
    allocation->next = allocations;
    allocations = allocation;
    pthread_mutex_unlock(&mutex);
}

static bool is_at(const struct allocation *allocation, const void *memory)
{
    return allocation->memory == *(const CUdeviceptr *)memory;
}

static bool is_gone(const struct allocation *allocation, const void *gone)
{
    const struct allocation *example = gone;
    return example->context ? allocation->context == example->context : allocation->device == example->device;
}

static void remove_all(bool (*matches)(const struct allocation *allocation, const void *wanted), const void *wanted)
{
    if (!settings.benchmark)
        return;
    pthread_mutex_lock(&mutex);
    for (struct allocation **at = &allocations; *at;) {
        struct allocation *allocation = *at;
        if (!matches(allocation, wanted)) {
            at = &allocation->next;
            continue;
        }
        *at = allocation->next;
        free(allocation);
    }
    pthread_mutex_unlock(&mutex);
}

void allocations_remove(CUdeviceptr memory)
{
    remove_all(is_at, &memory);
}

void allocations_forget(CUcontext context, CUdevice device)
{
    struct allocation gone = {.context = context, .device = device};
    remove_all(is_gone, &gone);
}

void allocations_note_mapping(void)
{
    atomic_store(&mapping_seen, true);
}

bool allocations_any_mapping(void)
{
    return atomic_load(&mapping_seen);
}

const struct allocation *allocations_lock(void)
{
    pthread_mutex_lock(&mutex);
    return allocations;
}

void allocations_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

const struct allocation *allocations_find(CUdeviceptr address)
{
    const struct allocation *allocation = allocations;
    while (allocation && (address < allocation->memory || address - allocation->memory >= allocation->size))
        allocation = allocation->next;
    return allocation;
}

void allocations_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    allocations = NULL;
}

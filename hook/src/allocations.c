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
    pthread_mutex_lock(&mutex);
    allocation->next = allocations;
    allocations = allocation;
    pthread_mutex_unlock(&mutex);
}

void allocations_remove(CUdeviceptr memory)
{
    if (!settings.benchmark)
        return;
    pthread_mutex_lock(&mutex);
    for (struct allocation **at = &allocations; *at; at = &(*at)->next)
        if ((*at)->memory == memory) {
            struct allocation *gone = *at;
            *at = gone->next;
            free(gone);
            break;
        }
    pthread_mutex_unlock(&mutex);
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

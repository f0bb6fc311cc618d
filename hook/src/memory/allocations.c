#define _GNU_SOURCE
#include "allocations.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "real.h"
#include "settings.h"

/* Recursive: a launch that is repeated holds it, and its probe may ask for the table of allocations. */
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct allocation *allocations;
static struct allocation *freed; /* the latest first */
static uint64_t version = 1;
static atomic_bool mapping_seen;

enum { MOST_FREED = 1024 };

/* Forgets memory that was freed and is now within an allocation, and what was freed long ago. */
static void forget_freed(CUdeviceptr start, size_t size)
{
    size_t n = 0;
    for (struct allocation **at = &freed; *at;) {
        struct allocation *allocation = *at;
        const bool apart = allocation->memory >= start + size || allocation->memory + allocation->size <= start;
        if (apart && n++ < MOST_FREED) {
            at = &allocation->next;
            continue;
        }
        *at = allocation->next;
        free(allocation);
    }
}

static void add(enum allocation_kind kind, CUdeviceptr memory, size_t size, const void *owner)
{
    struct allocation *allocation = settings.lists_allocations && memory ? calloc(1, sizeof *allocation) : NULL;
    if (!allocation)
        return;
    allocation->kind = kind;
    allocation->memory = memory;
    allocation->size = size;
    allocation->owner = owner;
    REAL_OR_NOT_FOUND(cuCtxGetCurrent, &allocation->context);
    pthread_mutex_lock(&mutex);
    forget_freed(memory, size);
    allocation->next = allocations;
    allocations = allocation;
    version++;
    pthread_mutex_unlock(&mutex);
}

void allocations_add(enum allocation_kind kind, CUdeviceptr memory, size_t size)
{
    add(kind, memory, size, NULL);
}

void allocations_add_variable(enum allocation_kind kind, CUdeviceptr memory, size_t size, const void *owner)
{
    pthread_mutex_lock(&mutex);
    const bool is_listed = allocations_find(memory) != NULL; /* programs ask for an address more than once */
    pthread_mutex_unlock(&mutex);
    if (!is_listed)
        add(kind, memory, size, owner);
}

static bool is_at(const struct allocation *allocation, const void *memory)
{
    return allocation->memory == *(const CUdeviceptr *)memory;
}

struct range {
    CUdeviceptr memory;
    size_t size;
};

static bool is_within(const struct allocation *allocation, const void *wanted)
{
    const struct range *range = wanted;
    return allocation->memory >= range->memory && allocation->memory - range->memory < range->size;
}

static bool is_of(const struct allocation *allocation, const void *owner)
{
    return allocation->owner == owner;
}

static bool is_leaving(const struct allocation *allocation, const void *context)
{
    return allocation->leaving && allocation->context == context;
}

static void remove_all(bool (*matches)(const struct allocation *allocation, const void *wanted), const void *wanted)
{
    if (!settings.lists_allocations)
        return;
    pthread_mutex_lock(&mutex);
    for (struct allocation **at = &allocations; *at;) {
        struct allocation *allocation = *at;
        if (!matches(allocation, wanted)) {
            at = &allocation->next;
            continue;
        }
        *at = allocation->next;
        allocation->next = freed;
        freed = allocation;
        version++;
    }
    forget_freed(0, 0);
    pthread_mutex_unlock(&mutex);
}

void allocations_remove(CUdeviceptr memory)
{
    remove_all(is_at, &memory);
}

void allocations_remove_range(CUdeviceptr memory, size_t size)
{
    remove_all(is_within, &(struct range){memory, size});
}

void allocations_remove_variables(const void *owner)
{
    remove_all(is_of, owner);
}

static void set_leaving(CUcontext context, bool leaving)
{
    pthread_mutex_lock(&mutex);
    for (struct allocation *allocation = allocations; allocation; allocation = allocation->next)
        if (allocation->context == context)
            allocation->leaving = leaving;
    pthread_mutex_unlock(&mutex);
}

void allocations_leave(CUcontext context)
{
    set_leaving(context, true);
}

void allocations_settle(CUcontext context, bool gone)
{
    if (gone)
        remove_all(is_leaving, context);
    else
        set_leaving(context, false);
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

const struct allocation *allocations_freed(void)
{
    return freed;
}

uint64_t allocations_version(void)
{
    return version;
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
    mutex = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    allocations = NULL;
    freed = NULL;
}

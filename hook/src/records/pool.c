#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "chunk.h"
#include "drain_dropped.h"
#include "real.h"
#include "reasons.h"
#include "settings.h"
#include "streams.h"

/* A chunk is cleared and copied back by one call each: 4 MiB make their fixed cost small against the copy, about 100 us
 * over PCIe. The parts leave the memory to the program, whose own allocations must not fail because of us: 1/10 of what
 * is free, never the last GiB (of small devices the last 1/8), and to one launch at most 1/16 of the device. */
enum { CHUNK_BYTES = 4 << 20, FREE_PARTS = 10, SMALL_PARTS = 8, LAUNCH_PARTS = 16, LEFT_BYTES = 1 << 30 };
enum { HOST_BYTES = 1 << 30 }; /* of records in host memory; one launch may take all */

/* Pools of contexts that are gone. They are never freed: a launching thread may have read the address of one. */
static struct pool *retired;
static pthread_mutex_t retired_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct pool *new_pool(void)
{
    pthread_mutex_lock(&retired_mutex);
    struct pool *pool = retired;
    if (pool)
        retired = pool->next;
    pthread_mutex_unlock(&retired_mutex);
    if (pool)
        *pool = (struct pool){0};
    return pool ? pool : calloc(1, sizeof *pool);
}

void pool_retire(struct pool *pool)
{
    pthread_mutex_lock(&retired_mutex);
    pool->next = retired;
    retired = pool;
    pthread_mutex_unlock(&retired_mutex);
}

/* The memory that stays free of a device for the program, which may want it at any moment; less of a small one. */
static size_t left_to_program(size_t total)
{
    return total / SMALL_PARTS < LEFT_BYTES ? total / SMALL_PARTS : LEFT_BYTES;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The context is current. */
static size_t memory_limit(void)
{
    size_t unused = 0, total = 0;
    if (settings.max_probe_memory)
        return settings.max_probe_memory;
    if (settings.host_records)
        return HOST_BYTES;
    if (REAL_OR_NOT_FOUND(cuMemGetInfo_v2, &unused, &total) != CUDA_SUCCESS)
        return (size_t)64 * CHUNK_BYTES;
    size_t left = left_to_program(total);
    return least(unused / FREE_PARTS, unused > left ? unused - left : 0);
}

/* Of LIMIT, which the user has set or which is not known to be a part of the device's memory. */
static size_t launch_limit(size_t limit)
{
    size_t unused = 0, total = 0;
    if (settings.max_probe_memory || settings.host_records ||
        REAL_OR_NOT_FOUND(cuMemGetInfo_v2, &unused, &total) != CUDA_SUCCESS)
        return limit;
    return least(limit, total / LAUNCH_PARTS);
}

/* The program may have taken much since the limit was set. */
static bool leaves_enough(size_t capacity)
{
    size_t unused = 0, total = 0;
    if (settings.max_probe_memory || REAL_OR_NOT_FOUND(cuMemGetInfo_v2, &unused, &total) != CUDA_SUCCESS)
        return true;
    return unused >= capacity + left_to_program(total);
}

static CUresult allocate_device(struct chunk *chunk, CUstream stream)
{
    if (!leaves_enough(chunk->capacity))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL_OR_NOT_FOUND(cuMemAlloc_v2, &chunk->memory, chunk->capacity);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL_OR_NOT_FOUND(cuMemsetD8Async, chunk->memory, 0, chunk->capacity, stream);
    return result == CUDA_SUCCESS ? REAL_OR_NOT_FOUND(cuStreamSynchronize, stream) : result;
}

static CUresult allocate_host(struct chunk *chunk)
{
    void *memory = NULL;
    const unsigned int flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    CUresult result = REAL_OR_NOT_FOUND(cuMemHostAlloc, &memory, chunk->capacity, flags);
    if (result != CUDA_SUCCESS)
        return result;
    chunk->host = memset(memory, 0, chunk->capacity);
    return REAL_OR_NOT_FOUND(cuMemHostGetDevicePointer_v2, &chunk->memory, memory, 0);
}

/* A chunk whose allocation failed may have none. */
static void free_memory(struct chunk *chunk)
{
    if (chunk->host)
        REAL_OR_NOT_FOUND(cuMemFreeHost, chunk->host);
    else if (chunk->memory)
        REAL_OR_NOT_FOUND(cuMemFree_v2, chunk->memory);
}

static struct chunk *allocate(struct pool *pool, size_t capacity)
{
    struct chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk)
        return NULL;
    chunk->pool = pool;
    chunk->capacity = capacity;
    int mode = capture_mode_relax();
    CUresult result = settings.host_records ? allocate_host(chunk) : allocate_device(chunk, pool->stream);
    if (result != CUDA_SUCCESS)
        free_memory(chunk);
    capture_mode_restore(mode);
    if (result == CUDA_SUCCESS)
        return chunk;
    free(chunk);
    return NULL;
}

struct pool *pool_create(CUcontext context)
{
    struct pool *pool = new_pool();
    if (!pool)
        return NULL;
    pool->context = context;
    pool->limit = memory_limit();
    pool->most = launch_limit(pool->limit);
    pool->staging_size = CHUNK_BYTES;
    int mode = capture_mode_relax();
    bool made = REAL_OR_NOT_FOUND(cuStreamCreate, &pool->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS;
    if (made && !pool_staging(pool)) {
        REAL_OR_NOT_FOUND(cuStreamDestroy_v2, pool->stream);
        made = false;
    }
    capture_mode_restore(mode);
    if (!made) {
        pool_retire(pool);
        return NULL;
    }
    if (!settings.memusage && pool->limit >= 2 * (size_t)CHUNK_BYTES && (pool->ready = allocate(pool, CHUNK_BYTES)))
        pool->allocated = CHUNK_BYTES;
    return pool;
}

uint8_t *pool_staging(struct pool *pool)
{
    void *staging = pool->staging;
    if (!staging && REAL_OR_NOT_FOUND(cuMemAllocHost_v2, &staging, pool->staging_size) != CUDA_SUCCESS)
        staging = NULL;
    return pool->staging = staging;
}

struct chunk *pool_take_ready(struct pool *pool, size_t size)
{
    for (struct chunk **at = &pool->ready; *at; at = &(*at)->next) {
        struct chunk *chunk = *at;
        if (chunk->capacity < size)
            continue;
        *at = chunk->next;
        chunk->next = NULL;
        return chunk;
    }
    return NULL;
}

/* Ready chunks that are too small for what is asked make way for a larger one. */
static struct chunk *detach_ready(struct pool *pool)
{
    struct chunk *all = pool->ready;
    for (struct chunk *chunk = all; chunk; chunk = chunk->next)
        pool->allocated -= chunk->capacity;
    pool->ready = NULL;
    return all;
}

/* Freeing is forbidden where a capture is going on, and would end it. */
static void release(struct chunk *chunk)
{
    int mode = chunk ? capture_mode_relax() : -1;
    while (chunk) {
        struct chunk *next = chunk->next;
        free_memory(chunk);
        if (chunk->staging)
            REAL_OR_NOT_FOUND(cuMemFreeHost, chunk->staging);
        chunk_destroy_events(chunk);
        chunk_free(chunk);
        chunk = next;
    }
    capture_mode_restore(mode);
}

struct chunk *pool_grow(struct pool *pool, size_t size, pthread_mutex_t *lock)
{
    size_t capacity = size > CHUNK_BYTES ? size : CHUNK_BYTES;
    struct chunk *small = NULL;
    if (capacity > pool->limit)
        capacity = pool->limit / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
    if (capacity < size)
        return NULL;
    if (pool->allocated + capacity > pool->limit)
        small = detach_ready(pool);
    bool fits = pool->allocated + capacity <= pool->limit;
    if (fits)
        pool->allocated += capacity;
    pthread_mutex_unlock(lock);
    release(small);
    struct chunk *chunk = fits ? allocate(pool, capacity) : NULL;
    pthread_mutex_lock(lock);
    if (fits && !chunk) {
        pool->allocated -= capacity;
        small = detach_ready(pool); /* the device is full: small chunks are of no use here, but to the program */
        pthread_mutex_unlock(lock);
        release(small);
        pthread_mutex_lock(lock);
    }
    return chunk;
}

struct chunk *pool_grow_ahead(struct pool *pool, pthread_mutex_t *lock)
{
    struct chunk *chunk = NULL;
    if (pool->fault || pool->allocated + 2 * (size_t)CHUNK_BYTES > pool->limit)
        return NULL;
    pool->allocated += CHUNK_BYTES;
    pthread_mutex_unlock(lock);
    if (REAL_OR_NOT_FOUND(cuCtxSetCurrent, pool->context) == CUDA_SUCCESS)
        chunk = allocate(pool, CHUNK_BYTES);
    pthread_mutex_lock(lock);
    if (!chunk)
        pool->allocated -= CHUNK_BYTES;
    return chunk;
}

/* A chunk that is nothing but the pinned memory of its pool. NULL without memory. */
static struct chunk *detach_staging(struct pool *pool)
{
    struct chunk *chunk = pool->staging && !pool->busy ? calloc(1, sizeof *chunk) : NULL;
    if (!chunk)
        return NULL;
    chunk->pool = pool;
    chunk->staging = pool->staging;
    pool->staging = NULL;
    return chunk;
}

static struct chunk *joined(struct chunk *first, struct chunk *then)
{
    struct chunk **end = &first;
    while (*end)
        end = &(*end)->next;
    *end = then;
    return first;
}

struct chunk *pool_take_unused(struct pool *pool, struct chunk *list)
{
    return joined(detach_ready(pool), joined(detach_staging(pool), list));
}

void pool_free(struct chunk *chunks)
{
    for (struct chunk *chunk = chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        chunk->next = NULL;
        if (REAL_OR_NOT_FOUND(cuCtxSetCurrent, chunk->pool->context) == CUDA_SUCCESS)
            release(chunk);
        else
            chunk_free(chunk);
    }
}

void pool_abandon(struct pool *pool)
{
    pool->context = NULL;
    pool->resident = 0;
    pool->allocations = 0;
    pool->allocations_version = 0;
    pool->fault = reason(CONTEXT_DESTROYED);
    if (pool->current)
        chunk_drop(&pool->current);
    while (pool->ready)
        chunk_drop(&pool->ready);
}

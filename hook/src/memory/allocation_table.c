#include "allocation_table.h"

#include <stdbool.h>
#include <stdlib.h>

#include "allocations.h"
#include "buffers.h"
#include "kernel.h"
#include "real.h"
#include "reasons.h"
#include "streams.h"

/* Tables follow one another in a ring, so that an older one is overwritten long after the launches that search it. */
enum { RING_BYTES = 16 << 20, ALIGNMENT = 64 };

struct entry {
    uint64_t start, end, limit;
};

struct table {
    uint64_t n;
    struct entry entries[];
};

static int by_start(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static void add(struct table *table, CUdeviceptr memory, size_t size, bool is_freed)
{
    table->entries[table->n++] = (struct entry){memory, is_freed ? memory : memory + size, memory + size};
}

static size_t count(const struct allocation *allocation)
{
    size_t n = 0;
    for (; allocation; allocation = allocation->next)
        n++;
    return n;
}

static size_t size_of(size_t n)
{
    return sizeof(struct table) + n * sizeof(struct entry);
}

/* The list is locked. */
static struct table *list_all(const struct allocation *allocations, const struct variant *variant, size_t n_globals)
{
    const struct allocation *freed = allocations_freed();
    struct table *table = calloc(1, size_of(count(allocations) + count(freed) + n_globals + 2));
    if (!table)
        return NULL;
    add(table, 0, 0, false);
    for (; allocations; allocations = allocations->next)
        add(table, allocations->memory, allocations->size, false);
    for (; freed; freed = freed->next)
        add(table, freed->memory, freed->size, true);
    for (size_t i = 0; i < n_globals; i++)
        add(table, variant->globals[i], variant->global_sizes[i], false);
    qsort(table->entries, table->n, sizeof *table->entries, by_start);
    table->entries[table->n] = (struct entry){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    return table;
}

static CUresult upload(struct pool *pool, const struct table *table, size_t size)
{
    CUresult result = CUDA_SUCCESS;
    if (!pool->allocations)
        result = REAL_OR_NOT_FOUND(cuMemAlloc_v2, &pool->allocations, RING_BYTES);
    if (pool->allocations_at + size > RING_BYTES)
        pool->allocations_at = 0;
    pool->allocations_table = pool->allocations + pool->allocations_at;
    if (result == CUDA_SUCCESS)
        result = REAL_OR_NOT_FOUND(cuMemcpyHtoDAsync_v2, pool->allocations_table, table, size, pool->stream);
    if (result == CUDA_SUCCESS)
        result = REAL_OR_NOT_FOUND(cuStreamSynchronize, pool->stream);
    pool->allocations_at += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return result;
}

/* The list of allocations is locked. */
static const struct reason *renew(const struct allocation *allocations, const struct variant *variant, size_t n_globals)
{
    struct pool *pool = variant->pool;
    struct table *table = list_all(allocations, variant, n_globals);
    if (!table)
        return reason(HOST_MEMORY);
    const size_t size = size_of(table->n + 1);
    const int mode = capture_mode_relax();
    const bool fits = size <= RING_BYTES && upload(pool, table, size) == CUDA_SUCCESS;
    capture_mode_restore(mode);
    free(table);
    pool->allocations_version = fits && !n_globals ? allocations_version() : 0; /* variables are of one kernel */
    return fits ? NULL : reason(PROBE_MEMORY);
}

const struct reason *allocation_table(const struct variant *variant, size_t n_globals, CUdeviceptr *table)
{
    const struct reason *reason = NULL;
    const struct allocation *allocations = allocations_lock(); /* which guards the tables, too */
    if (n_globals || variant->pool->allocations_version != allocations_version())
        reason = renew(allocations, variant, n_globals);
    *table = variant->pool->allocations_table;
    allocations_unlock();
    return reason;
}

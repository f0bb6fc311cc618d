#include "buffers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "chunk.h"
#include "clock.h"
#include "drain_wake.h"
#include "layout.h"
#include "pool.h"
#include "real.h"
#include "reasons.h"
#include "result.h"
#include "sealed_chunks.h"
#include "settings.h"
#include "signals.h"

/* A launch waits this long for memory that is being drained, then runs unprobed: a device may be stuck. */
enum { WAIT_MILLISECONDS = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools;
static unsigned pressed; /* threads of the program that want the memory */
static _Thread_local struct claim own __attribute__((tls_model("initial-exec")));

void buffers_lock(void)
{
    signals_lock(&mutex);
}

void buffers_unlock(void)
{
    signals_unlock(&mutex);
}

struct pool *buffers_pool(CUcontext context)
{
    sealed_start();
    buffers_lock();
    struct pool *pool = pools;
    while (pool && (pool->context != context || pool->leaving))
        pool = pool->next;
    buffers_unlock();
    if (pool)
        return pool;
    pool = pool_create(context);
    if (!pool)
        return NULL;
    buffers_lock();
    pool->next = pools;
    pools = pool;
    buffers_unlock();
    return pool;
}

/* The chunk for a piece of SIZE if there is, or can be, one without waiting. */
static struct chunk *chunk_at_hand(struct pool *pool, size_t size)
{
    if (pool->current && pool->current->capacity - pool->current->used >= size)
        return pool->current;
    if (pool->current)
        sealed_put(pool);
    struct chunk *chunk = pool_take_ready(pool, size);
    if (!chunk)
        chunk = pool_grow(pool, size, &mutex);
    if (!chunk || !pool->current)
        return pool->current = chunk;
    chunk->next = pool->ready; /* another thread was quicker while the lock was not held */
    pool->ready = chunk;
    return chunk_at_hand(pool, size);
}

/* The same, waiting a moment for the draining thread if there is something to wait for, and no other launch to
 * record. */
static struct chunk *find_chunk(struct pool *pool, size_t size, bool may_wait, const struct reason **reason)
{
    struct timespec deadline = clock_deadline(WAIT_MILLISECONDS);
    while (!pool->fault && !pressed) {
        struct chunk *chunk = chunk_at_hand(pool, size);
        if (chunk)
            return chunk;
        if (pool->ready) /* returned while the lock was not held */
            continue;
        if (!pool->busy || pool->starved || !may_wait) {
            *reason = reason(PROBE_MEMORY);
            return NULL;
        }
        drain_wake();
        pool->starved = !sealed_wait(&mutex, &deadline);
    }
    *reason = pool->fault ? pool->fault : reason(PROBE_MEMORY);
    return NULL;
}

static void fill_piece(struct piece *piece, const struct launch *launch, struct kernel_probe *probe, size_t offset,
                       bool continues)
{
    *piece = (struct piece){.continues = continues};
    piece->stamp = result_stamp(launch->time);
    piece->number = launch->number;
    piece->probe = probe;
    piece->capacities = launch->capacities;
    piece->group = launch->group;
    piece->offset = offset;
    memcpy(piece->grid, launch->grid, sizeof piece->grid);
    memcpy(piece->block, launch->block, sizeof piece->block);
    piece->shared = launch->shared;
}

/* A piece for each probe whose records the launch leaves, from the end of the chunk on. Returns how many. */
static size_t fill_pieces(struct chunk *chunk, const struct launch *launch, struct kernel_probe *probe)
{
    size_t n = 0, offset = chunk->used;
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(probe, part)); n++) {
        size_t size = 0;
        fill_piece(&chunk->pieces[chunk->n_pieces++], launch, part, offset, n > 0);
        chunk->pieces[chunk->n_pieces - 1].void_launch = part->resident; /* the watchdog writes its result */
        layout_device_size(part, launch->capacities, launch->grid, launch->block, &size);
        offset += size;
    }
    return n;
}

/* Has the draining thread ready the next chunk in time, so that no launch waits for memory to be allocated. */
static void want_next(const struct chunk *chunk)
{
    struct pool *pool = chunk->pool;
    if (pool->wanting || pool->ready || chunk->used < chunk->capacity / 4)
        return;
    pool->wanting = true;
    drain_wake();
}

static const struct reason *too_large(size_t needed, size_t limit)
{
    char texts[2][REASON_NUMBER_SIZE];
    if (!limit)
        return reason_with(DEVICE_FULL, reason_number(texts[0], needed));
    return reason_with(LAUNCH_TOO_LARGE, reason_number(texts[0], needed), reason_number(texts[1], limit));
}

/* If only some launches are probed there is another; and nodes of a graph hold chunks until the last has its
 * piece. */
static bool may_wait(const struct launch *launch)
{
    return !settings.scheduled && !launch->replayed;
}

struct chunk *buffers_take(struct pool *pool, const struct launch *launch, struct kernel_probe *probe, size_t size,
                           struct claim *claim, const struct reason **reason)
{
    size = (size + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
    if (size > pool->most) {
        *reason = too_large(size, pool->most);
        return NULL;
    }
    buffers_lock();
    struct chunk *chunk = find_chunk(pool, size, may_wait(launch), reason);
    if (chunk && !chunk_reserve_pieces(chunk, settings.n_probes)) {
        chunk = NULL;
        *reason = reason(HOST_MEMORY);
    }
    if (chunk) {
        if (!chunk->n_pieces)
            chunk->begun = launch->time;
        claim->piece = chunk->n_pieces;
        claim->memory = chunk->memory + chunk->used;
        claim->n_pieces = fill_pieces(chunk, launch, probe);
        chunk->used += size;
        chunk->in_flight++;
        claim->chunk = chunk;
        own = *claim;
        want_next(chunk);
    }
    buffers_unlock();
    return chunk;
}

/* Nothing is to be saved. */
static void void_pieces(const struct claim *claim)
{
    for (size_t i = 0; i < claim->n_pieces; i++)
        claim->chunk->pieces[claim->piece + i].void_launch = true;
}

void buffers_launched(struct chunk *chunk, const struct claim *claim, const struct launch *launch, CUresult result)
{
    buffers_lock();
    chunk->in_flight--;
    own.chunk = NULL;
    chunk->touched = launch->time;
    if (result == CUDA_SUCCESS)
        chunk_note_stream(chunk, launch_stream(launch));
    else
        void_pieces(claim);
    if (chunk->sealed && !chunk->in_flight)
        sealed_left(chunk);
    buffers_unlock();
    drain_expect();
}

bool buffers_wait_for_launches(void)
{
    return sealed_launching();
}

struct claim *buffers_own_claim(void)
{
    return own.chunk ? &own : NULL;
}

void buffers_leave_claim(const struct claim *claim)
{
    struct chunk *chunk = claim ? claim->chunk : NULL;
    if (!chunk || !chunk->in_flight || !chunk->sealed)
        return;
    void_pieces(claim);
    if (!--chunk->in_flight)
        sealed_left(chunk);
}

static void each_chunk(void (*visit)(struct chunk *chunk, CUstream stream), CUstream stream)
{
    sealed_each(visit, stream);
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->current)
            visit(pool->current, stream);
}

void buffers_leave_stream(CUstream stream)
{
    buffers_lock();
    each_chunk(chunk_leave_stream, stream);
    buffers_unlock();
}

void buffers_mark_stream(CUstream stream)
{
    each_chunk(chunk_mark_stream, stream);
}

void buffers_leave(CUcontext context)
{
    buffers_lock();
    for (struct pool *pool = pools; pool; pool = pool->next)
        pool->leaving = pool->leaving || pool->context == context;
    buffers_unlock();
}

/* A chunk that a launch is under way into is dropped when that has returned, one that is drained when that is over. */
static void abandon(struct pool *pool)
{
    if (pool->current && pool->current->in_flight)
        sealed_put(pool);
    sealed_drop(pool);
    pool_abandon(pool);
    if (!pool->busy)
        pool_retire(pool);
}

void buffers_settle(CUcontext context, bool gone)
{
    buffers_lock();
    for (struct pool **at = &pools; *at;) {
        struct pool *pool = *at;
        if (pool->context != context || !pool->leaving || !gone) {
            pool->leaving = pool->leaving && pool->context != context;
            at = &pool->next;
            continue;
        }
        *at = pool->next;
        abandon(pool);
    }
    buffers_unlock();
}

static bool is_older(uint64_t time, uint64_t now, unsigned milliseconds)
{
    return time + milliseconds * 1000000ull <= now;
}

void buffers_seal_waiting(uint64_t now)
{
    for (struct pool *pool = pools; pool; pool = pool->next) {
        struct chunk *chunk = pool->current;
        if (!chunk || !chunk->n_pieces)
            continue;
        bool old = is_older(chunk->begun, now, OLD_MILLISECONDS);
        if ((!chunk->in_flight && is_older(chunk->touched, now, IDLE_MILLISECONDS)) || (old && pool->ready))
            sealed_put(pool);
        else if (old)
            pool->wanting = true;
    }
}

static void give(struct pool *pool, struct chunk *chunk)
{
    chunk->next = pool->ready;
    pool->ready = chunk;
}

void buffers_return(struct chunk *chunk)
{
    struct pool *pool = chunk->pool;
    chunk->n_pieces = chunk->n_uses = chunk->used = 0;
    chunk->sealed = false;
    if (pool->context)
        give(pool, chunk);
    else
        chunk_free(chunk);
    sealed_settled(pool);
}

void buffers_grow_ahead(void)
{
    for (struct pool *pool = pools; pool; pool = pool->next) {
        if (!pool->wanting)
            continue;
        struct chunk *chunk = pool->ready || pressed ? NULL : pool_grow_ahead(pool, &mutex);
        pool->wanting = false;
        if (chunk)
            give(pool, chunk);
    }
}

struct chunk *buffers_take_unused(void)
{
    struct chunk *unused = NULL;
    for (struct pool *pool = pools; pool; pool = pool->next) {
        if (pool->leaving)
            continue;
        if (pool->current && !pool->current->n_pieces) {
            give(pool, pool->current);
            pool->current = NULL;
        }
        unused = pool_take_unused(pool, unused);
    }
    return unused;
}

void buffers_press(void)
{
    buffers_lock();
    pressed++;
    sealed_wake();
    buffers_unlock();
}

void buffers_relieve(void)
{
    buffers_lock();
    pressed--;
    buffers_unlock();
}

static void seal_used(CUcontext context)
{
    for (struct pool *pool = pools; pool; pool = pool->next)
        if ((!context || pool->context == context) && pool->current && pool->current->n_pieces)
            sealed_put(pool);
}

void buffers_seal(CUcontext context)
{
    buffers_lock();
    seal_used(context);
    buffers_unlock();
}

/* A launch of the calling thread's own does not return while it waits here. */
static unsigned others_of(const struct pool *pool)
{
    const bool is_own = own.chunk && own.chunk->pool == pool && own.chunk->sealed;
    return pool->busy - is_own;
}

bool buffers_draining(CUcontext context)
{
    bool any = false;
    buffers_lock();
    for (struct pool *pool = pools; pool && !any; pool = pool->next)
        any = (!context || pool->context == context) && others_of(pool);
    buffers_unlock();
    return any;
}

uint64_t buffers_seal_all(void)
{
    seal_used(NULL);
    return sealed_count();
}

bool buffers_may_copy(const struct chunk *chunk)
{
    buffers_lock();
    const bool may = chunk->pool->context && !chunk->pool->leaving;
    buffers_unlock();
    return may;
}

bool buffers_pending(void)
{
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->current && pool->current->n_pieces)
            return true;
    return sealed_any() || sealed_launching();
}

size_t buffers_resident_pools(struct pool **list, size_t most)
{
    size_t n = 0;
    buffers_lock();
    for (struct pool *pool = pools; pool && n < most; pool = pool->next)
        if (pool->resident && !pool->leaving)
            list[n++] = pool;
    buffers_unlock();
    return n;
}

void buffers_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    pools = NULL;
    sealed_reset();
    pressed = 0;
}

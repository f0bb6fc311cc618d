#include "sealed_chunks.h"

#include <stdatomic.h>

#include "chunk.h"
#include "drain_wake.h"
#include "pool.h"

static pthread_cond_t returned;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct chunk *sealed;  /* oldest first */
static struct chunk *leaving; /* sealed, but a launch is still under way */
static atomic_int n_leaving;
static uint64_t count;

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&returned, &attributes);
    pthread_condattr_destroy(&attributes);
}

void sealed_start(void)
{
    pthread_once(&once, make_condition);
}

bool sealed_wait(pthread_mutex_t *lock, const struct timespec *deadline)
{
    return pthread_cond_timedwait(&returned, lock, deadline) == 0;
}

void sealed_wake(void)
{
    pthread_cond_broadcast(&returned);
}

void sealed_settled(struct pool *pool)
{
    pool->busy--;
    pool->starved = false;
    if (!pool->context && !pool->busy)
        pool_retire(pool);
    pthread_cond_broadcast(&returned);
}

/* No one launches into it any more: the draining thread may have it. */
static void hand_over(struct chunk *chunk)
{
    struct chunk **end = &sealed;
    struct pool *pool = chunk->pool;
    if (!pool->context) { /* destroyed while that launch was under way */
        chunk_drop(&chunk);
        sealed_settled(pool);
        return;
    }
    chunk_record_events(chunk);
    while (*end)
        end = &(*end)->next;
    chunk->next = NULL;
    *end = chunk;
    drain_wake();
}

/* The last launch to leave it hands it over. */
void sealed_put(struct pool *pool)
{
    struct chunk *chunk = pool->current;
    pool->current = NULL;
    pool->busy++;
    chunk->sealed = true;
    chunk->serial = ++count;
    if (!chunk->in_flight) {
        hand_over(chunk);
        return;
    }
    chunk->next = leaving;
    leaving = chunk;
    atomic_fetch_add(&n_leaving, 1);
}

void sealed_left(struct chunk *chunk)
{
    struct chunk **at = &leaving;
    while (*at != chunk)
        at = &(*at)->next;
    *at = chunk->next;
    atomic_fetch_sub(&n_leaving, 1);
    hand_over(chunk);
}

bool sealed_launching(void)
{
    return atomic_load(&n_leaving) > 0;
}

void sealed_each(void (*visit)(struct chunk *chunk, CUstream stream), CUstream stream)
{
    for (struct chunk *chunk = sealed; chunk; chunk = chunk->next)
        visit(chunk, stream);
    for (struct chunk *chunk = leaving; chunk; chunk = chunk->next)
        visit(chunk, stream);
}

void sealed_drop(struct pool *pool)
{
    for (struct chunk **queued = &sealed; *queued;)
        if ((*queued)->pool == pool) {
            chunk_drop(queued);
            pool->busy--;
        } else {
            queued = &(*queued)->next;
        }
}

/* Work of one context may be held up by the program until another's is over: of several contexts a chunk that can be
 * drained immediately goes first. */
static bool is_alone(const struct pool *pool)
{
    for (const struct chunk *chunk = sealed; chunk; chunk = chunk->next)
        if (chunk->pool != pool)
            return false;
    return true;
}

struct chunk *sealed_next(void)
{
    for (struct chunk **at = &sealed; *at; at = &(*at)->next) {
        struct chunk *chunk = *at;
        if (!chunk_record_events(chunk) || !(is_alone(chunk->pool) || chunk_is_done(chunk)))
            continue;
        *at = chunk->next;
        return chunk;
    }
    return NULL;
}

bool sealed_any(void)
{
    return sealed != NULL;
}

uint64_t sealed_count(void)
{
    return count;
}

bool sealed_until(uint64_t serial)
{
    for (struct chunk *chunk = leaving; chunk; chunk = chunk->next)
        if (chunk->serial <= serial)
            return true;
    for (struct chunk *chunk = sealed; chunk; chunk = chunk->next)
        if (chunk->serial <= serial)
            return true;
    return false;
}

void sealed_reset(void)
{
    sealed = leaving = NULL;
    atomic_store(&n_leaving, 0);
}

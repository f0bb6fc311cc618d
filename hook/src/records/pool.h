/* The memory of one context for probe records; see buffers.h, which owns the pools and the lock. */
#ifndef TUI_PROBE_POOL_H
#define TUI_PROBE_POOL_H

#include <pthread.h>

#include "buffers.h"

/* CONTEXT must be current. NULL if the driver refuses what is needed. The lock is not held. */
struct pool *pool_create(CUcontext context);

/* A cleared chunk of at least SIZE bytes, out of the ready list. */
struct chunk *pool_take_ready(struct pool *pool, size_t size);

/* A new cleared chunk of at least SIZE bytes; NULL above the limit or without device memory.
 * LOCK is released meanwhile. */
struct chunk *pool_grow(struct pool *pool, size_t size, pthread_mutex_t *lock);

/* The same on a hook thread: a chunk of the usual size, and only while there is plenty of room. */
struct chunk *pool_grow_ahead(struct pool *pool, pthread_mutex_t *lock);

/* Puts the cleared chunks, and pinned memory that no copy needs, in front of a list for pool_free. The lock is held. */
struct chunk *pool_take_unused(struct pool *pool, struct chunk *list);

/* Frees a list of chunks. The lock is not held. */
void pool_free(struct chunk *chunks);

/* The memory that records are copied to; made anew if it was freed. NULL without memory. */
uint8_t *pool_staging(struct pool *pool);

/* The context is gone, and with it all that the pool held on the device: drops its chunks that are in no list of
 * buffers.h. The lock is held. */
void pool_abandon(struct pool *pool);

/* No launch and no hook thread has a chunk of an abandoned pool: another context may have it. The lock is held. */
void pool_retire(struct pool *pool);

#endif

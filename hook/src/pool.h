/* The memory of one context for probe records; see buffers.h, which owns the pools and the lock. */
#ifndef TUI_PROBE_POOL_H
#define TUI_PROBE_POOL_H

#include <pthread.h>

#include "buffers.h"

/* CONTEXT must be current. NULL if the driver refuses what is needed. The lock is not held. */
struct pool *pool_create(CUcontext context, CUdevice device);

/* A cleared chunk of at least SIZE bytes, out of the ready list. */
struct chunk *pool_take_ready(struct pool *pool, size_t size);

/* A new cleared chunk of at least SIZE bytes; NULL above the limit or without device memory.
 * LOCK is released meanwhile. */
struct chunk *pool_grow(struct pool *pool, size_t size, pthread_mutex_t *lock);

/* The same on a thread of ours: a chunk of the usual size, and only while there is plenty of room. */
struct chunk *pool_grow_ahead(struct pool *pool, pthread_mutex_t *lock);

/* Frees the cleared chunks; the lock is held. False if there were none. */
bool pool_release_ready(struct pool *pool);

/* The context is gone, and with it all that the pool held on the device. */
void pool_abandon(struct pool *pool);

#endif

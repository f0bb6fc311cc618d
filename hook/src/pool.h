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

/* The context is gone, and with it all that the pool held on the device. */
void pool_abandon(struct pool *pool);

#endif

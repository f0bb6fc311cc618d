/* The queue of sealed chunks, oldest first, and those that a launch under way keeps out of it. The lock of the buffers
 * is held, unless a function says otherwise. */
#ifndef TUI_PROBE_SEALED_CHUNKS_H
#define TUI_PROBE_SEALED_CHUNKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "buffers.h"

/* Before the first wait. The lock is not needed. */
void sealed_start(void);

/* Waits until a chunk is returned, with LOCK released; false when DEADLINE is over. */
bool sealed_wait(pthread_mutex_t *lock, const struct timespec *deadline);
void sealed_wake(void);

/* Takes the current chunk of POOL out of use, and numbers it. The draining thread gets it once no launch is
 * under way. */
void sealed_put(struct pool *pool);

/* The last launch into a sealed chunk has returned. */
void sealed_left(struct chunk *chunk);

/* A sealed chunk of POOL is drained, or gone. */
void sealed_settled(struct pool *pool);

/* Chunks of POOL that wait to be drained are dropped: their context is gone. */
void sealed_drop(struct pool *pool);

void sealed_each(void (*visit)(struct chunk *chunk, CUstream stream), CUstream stream);

/* Takes the oldest chunk that can be drained; NULL if there is none. */
struct chunk *sealed_next(void);

/* Some chunk that could not be taken: its launches are running, or a capture is. */
bool sealed_any(void);

/* Some sealed chunk waits for launches under way. Takes no lock. */
bool sealed_launching(void);

/* Chunks sealed so far, which are numbered in this order. */
uint64_t sealed_count(void);

/* A chunk up to the number SERIAL is still to be drained. */
bool sealed_until(uint64_t serial);

void sealed_reset(void);

#endif

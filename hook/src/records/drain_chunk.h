/* A sealed chunk is drained: its records are copied off the device and written, then it is cleared and returned. */
#ifndef TUI_PROBE_DRAIN_CHUNK_H
#define TUI_PROBE_DRAIN_CHUNK_H

#include <stdbool.h>
#include <stddef.h>

struct chunk;
struct pool;

/* Waits for its launches and saves their results. GIVEN_UP: no one waits for them any more, and they are dropped. */
void drain_chunk(struct chunk *chunk, bool given_up);

/* Copies the table of resident maps of POOL, while kernels run. False if its context goes, or the driver refuses. */
bool drain_read_resident(struct pool *pool, void *to);

/* Frees the memory that no launch has taken. */
void drain_free_unused(void);

/* Returns when the thread reads no memory of a context that buffers_leave was called for. */
void drain_leave_memory(void);

void drain_chunk_reset(void);

#endif

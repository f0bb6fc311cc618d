/* The rate at which results may be written where launches are sampled: as fast as the user allows, and half as fast as
 * this process was seen to write. All processes of a run together; a second's worth may be ahead of it. */
#ifndef TUI_PROBE_WRITE_RATE_H
#define TUI_PROBE_WRITE_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* True if what was reserved so far is more than can be written soon. */
bool write_rate_is_over(void);

/* Reserves BYTES, or takes back what was reserved and is not written. */
void write_rate_use(uint64_t bytes);
void write_rate_return(uint64_t bytes);

/* A file of BYTES has taken so long to write. */
void write_rate_saw(uint64_t bytes, uint64_t nanoseconds);

#endif

/* Results that were not saved. */
#ifndef TUI_PROBE_DRAIN_DROPPED_H
#define TUI_PROBE_DRAIN_DROPPED_H

#include <stddef.h>
#include <stdint.h>

struct reason;

/* Counts some. */
void drain_dropped(size_t results, const struct reason *reason);

/* Returns how many, and why the last ones; NULL if there are none. */
uint64_t drain_dropped_count(const struct reason **last_reason);

void drain_dropped_reset(void);

#endif

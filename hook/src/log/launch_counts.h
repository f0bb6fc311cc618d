/* Launches of this process so far: those that ran probed, and those that were captured and did not run. */
#ifndef TUI_PROBE_LAUNCH_COUNTS_H
#define TUI_PROBE_LAUNCH_COUNTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "reasons.h"

struct launch_counts {
    atomic_uint_fast64_t all, probed, captured;
    atomic_uint_fast64_t watched; /* probed launches without records of their own */
};

extern struct launch_counts launch_counts;

uint64_t launch_count(void);
uint64_t launch_probed_count(void);
uint64_t launch_recorded_count(void); /* probed launches that have records */
uint64_t launch_run_count(void);
void launch_counts_reset(void);

/* Counts one; returns how many came before. */
static inline uint64_t launch_count_next(void)
{
    return atomic_fetch_add_explicit(&launch_counts.all, 1, memory_order_relaxed);
}

/* Counts N immediately: the nodes of a replayed graph. */
static inline uint64_t launch_count_many(uint64_t n)
{
    return atomic_fetch_add_explicit(&launch_counts.all, n, memory_order_relaxed);
}

/* True if a launch that passed for REASON ran: a captured one becomes a node of a graph, which replays run. */
static inline bool launch_reason_has_run(const struct reason *reason)
{
    return reason->code != REASON_CAPTURING;
}

static inline void launch_count_captured(void)
{
    atomic_fetch_add_explicit(&launch_counts.captured, 1, memory_order_relaxed);
}

static inline void launch_count_watched(void)
{
    atomic_fetch_add_explicit(&launch_counts.watched, 1, memory_order_relaxed);
}

static inline void launch_count_probed(void)
{
    atomic_fetch_add_explicit(&launch_counts.probed, 1, memory_order_relaxed);
}

#endif

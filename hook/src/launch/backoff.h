/* Samples of launches: the first, then ever fewer, at places that a hash chooses so that a program with a
 * period does not always show the same of its parts. */
#ifndef TUI_PROBE_BACKOFF_H
#define TUI_PROBE_BACKOFF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct backoff {
    atomic_uint_fast64_t next; /* the launch that is due; all 0: the first */
};

/* True if launch N of those that are counted, counted from 0, is due; then the next one is put off by
 * 1 + N / DIVISOR, and as much again at random, which SEED decides. Of several threads one is given yes. */
bool backoff_due(struct backoff *backoff, uint64_t n, uint64_t seed, unsigned divisor);

#endif

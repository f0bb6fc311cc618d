#include "drain_dropped.h"

#include <stdatomic.h>

static atomic_uint_fast64_t dropped;
static _Atomic(const struct reason *) dropped_reason;

void drain_dropped(size_t results, const struct reason *reason)
{
    if (!results)
        return;
    atomic_fetch_add(&dropped, results);
    atomic_store(&dropped_reason, reason);
}

uint64_t drain_dropped_count(const struct reason **last_reason)
{
    *last_reason = atomic_load(&dropped_reason);
    return atomic_load(&dropped);
}

void drain_dropped_reset(void)
{
    atomic_store(&dropped, 0);
}

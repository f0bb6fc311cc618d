#include "host_memory.h"

#include <stdatomic.h>
#include <stdint.h>

#include "settings.h"

static _Atomic uint64_t used[HOST_USES];

static uint64_t most_for(enum host_use use)
{
    if (use == HOST_IMAGES)
        return settings.max_host_memory / 2;
    const uint64_t images = atomic_load(&used[HOST_IMAGES]);
    return settings.max_host_memory > images ? settings.max_host_memory - images : 0;
}

bool host_memory_take(enum host_use use, size_t size)
{
    uint64_t before = atomic_load(&used[use]);
    do
        if (size > most_for(use) || before > most_for(use) - size)
            return false;
    while (!atomic_compare_exchange_weak(&used[use], &before, before + size));
    return true;
}

void host_memory_give(enum host_use use, size_t size)
{
    atomic_fetch_sub(&used[use], size);
}

void host_memory_reset(void)
{
    atomic_store(&used[HOST_RECORDS], 0);
}

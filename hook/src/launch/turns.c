#include "turns.h"

#include "control.h"

static unsigned slot_of_shape(const uint32_t grid[3], const uint32_t block[3], uint32_t shared)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < 3; i++)
        hash = ((hash ^ grid[i]) * 16777619u ^ block[i]) * 16777619u;
    hash = (hash ^ shared) * 16777619u;
    return (hash ^ hash >> 16) % KERNEL_TURNS;
}

static unsigned slot_of(const struct launch *launch)
{
    return slot_of_shape(launch->grid, launch->block, launch->shared);
}

static unsigned last_of(const struct probing *probing, unsigned slot)
{
    return atomic_load_explicit(&probing->served[slot], memory_order_relaxed);
}

size_t turns_order(struct kernel *kernel, const struct launch *launch, struct probing *order[])
{
    const uint64_t only = atomic_load_explicit(&control->only_probe, memory_order_relaxed);
    const unsigned slot = slot_of(launch);
    size_t n = 0;
    if (only && only <= kernel->n_probings) {
        order[0] = &kernel->probings[only - 1];
        return 1;
    }
    for (size_t i = 0; i < kernel->n_probings; i++) {
        struct probing *probing = &kernel->probings[i];
        size_t at = n;
        if (atomic_load_explicit(&probing->reason, memory_order_relaxed))
            continue;
        for (; at && last_of(order[at - 1], slot) > last_of(probing, slot); at--)
            order[at] = order[at - 1];
        order[at] = probing;
        n++;
    }
    return n;
}

void turns_served(struct probing *probing, const struct launch *launch)
{
    struct kernel *kernel = probing->kernel;
    const unsigned slot = slot_of(launch);
    if (kernel->n_probings > 1)
        atomic_store_explicit(&probing->served[slot],
                              atomic_fetch_add_explicit(&kernel->turns[slot], 1, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}

void turns_first(struct probing *probing, const uint32_t grid[3], const uint32_t block[3], uint32_t shared)
{
    atomic_store_explicit(&probing->served[slot_of_shape(grid, block, shared)], 0, memory_order_relaxed);
}

#include "rotation.h"

#include <limits.h>

#include "control.h"

/* Instead of a launch: it has no more turns. As the last launch, it is behind all others. */
#define ENDED UINT_MAX

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

/* True of a group of sites for which the kernel has none: its launches would find nothing of note. */
static bool is_empty(const struct kernel_probe *probe)
{
    return probe->least.percent && !probe->maps[probe->least.sites].sites;
}

static unsigned last_of(const struct kernel_probe *probe, unsigned slot)
{
    return is_empty(probe) ? ENDED : atomic_load_explicit(&probe->served[slot], memory_order_relaxed);
}

/* Puts PROBE, unless it cannot be used, behind those of N that have waited as long or longer. Returns how many there
 * are. */
static size_t put_in_order(struct kernel_probe *order[], size_t n, struct kernel_probe *probe, unsigned slot)
{
    size_t at = n;
    if (atomic_load_explicit(&probe->reason, memory_order_acquire)) /* it may be there from now on */
        return n;
    for (; at && last_of(order[at - 1], slot) > last_of(probe, slot); at--)
        order[at] = order[at - 1];
    order[at] = probe;
    return n + 1;
}

size_t rotation_order(struct kernel *kernel, const struct launch *launch, struct kernel_probe *order[])
{
    const uint64_t only = atomic_load_explicit(&control->only_probe, memory_order_relaxed);
    const unsigned slot = slot_of(launch);
    size_t n = 0;
    if (only && only <= kernel->n_probes) {
        order[0] = kernel_probe_launched(&kernel->probes[only - 1]);
        return 1;
    }
    if (kernel->fused)
        n = put_in_order(order, n, kernel->fused, slot);
    for (size_t i = 0; i < kernel->n_probes; i++)
        if (kernel_probe_launched(&kernel->probes[i]) == &kernel->probes[i])
            n = put_in_order(order, n, &kernel->probes[i], slot);
    while (n > 1 && last_of(order[n - 1], slot) == ENDED)
        n--;
    return n;
}

bool rotation_has_served(const struct kernel_probe *probe, const struct launch *launch)
{
    return last_of(probe, slot_of(launch)) != 0;
}

void rotation_served(struct kernel_probe *probe, const struct launch *launch)
{
    struct kernel *kernel = probe->kernel;
    const unsigned slot = slot_of(launch);
    if (kernel->n_probes == 1)
        return;
    const unsigned turn = atomic_fetch_add_explicit(&kernel->turns[slot], 1, memory_order_relaxed) + 1;
    unsigned before = last_of(probe, slot);
    while (before != ENDED && !atomic_compare_exchange_weak(&probe->served[slot], &before, turn))
        ;
}

static bool has_turns(const struct kernel_probe *probe, unsigned slot)
{
    return !atomic_load_explicit(&probe->reason, memory_order_acquire) && last_of(probe, slot) != ENDED;
}

bool rotation_end(struct kernel_probe *probe, const uint32_t grid[3], const uint32_t block[3], uint32_t shared)
{
    struct kernel *kernel = probe->kernel;
    const unsigned slot = slot_of_shape(grid, block, shared);
    bool others = false;
    if (kernel_probe_launched(probe) != probe)
        return false;
    for (size_t i = 0; i < kernel->n_probes; i++) {
        const struct kernel_probe *other = kernel_probe_launched(&kernel->probes[i]);
        others = others || (other != probe && has_turns(other, slot));
    }
    return others && atomic_exchange(&probe->served[slot], ENDED) != ENDED;
}

void rotation_first(struct kernel_probe *probe, const uint32_t grid[3], const uint32_t block[3], uint32_t shared)
{
    atomic_store_explicit(&probe->served[slot_of_shape(grid, block, shared)], 0, memory_order_relaxed);
}

#include "probed_size.h"

#include "buffers.h"
#include "capacities.h"
#include "reasons.h"
#include "residency.h"

size_t probed_memory(const struct variant *variant)
{
    const struct pool *pool = variant->pool;
    return pool->most < pool->limit / 2 ? pool->most : pool->limit / 2;
}

const struct reason *probed_size(struct launch *launch, struct probing *probing, struct variant *variant, size_t *size)
{
    const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    const struct reason *reason = sampling_refuses(&probing->sampling, blocks);
    if (!reason)
        reason = residency_refuses(variant, probing, launch);
    if (reason)
        return reason;
    launch->capacities = capacities_choose(probing, launch->grid, launch->block, probed_memory(variant));
    if (!launch->capacities)
        return reason(HOST_MEMORY);
    if (!layout_device_size(probing, launch->capacities, launch->grid, launch->block, size))
        return reason(TOO_MANY_RECORDS);
    return NULL;
}

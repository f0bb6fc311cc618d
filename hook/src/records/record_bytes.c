#include "record_bytes.h"

#include "buffers.h"
#include "capacities.h"
#include "reasons.h"
#include "residency.h"

size_t record_bytes_limit(const struct variant *variant)
{
    const struct pool *pool = variant->pool;
    return pool->most < pool->limit / 2 ? pool->most : pool->limit / 2;
}

const struct reason *record_bytes(struct launch *launch, struct kernel_probe *probe, struct variant *variant,
                                  size_t *size)
{
    const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    const struct reason *reason = sampling_refuses(&probe->sampling, blocks);
    if (!reason)
        reason = residency_refuses(variant, probe, launch);
    if (reason)
        return reason;
    launch->capacities = capacities_choose(probe, launch->grid, launch->block, record_bytes_limit(variant));
    if (!launch->capacities)
        return reason(HOST_MEMORY);
    if (!layout_device_size(probe, launch->capacities, launch->grid, launch->block, size))
        return reason(TOO_MANY_RECORDS);
    return NULL;
}

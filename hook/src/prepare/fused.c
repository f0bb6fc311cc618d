#include "fused.h"

#include <stdio.h>

#include "real.h"
#include "registry.h"
#include "variants.h"

/* Counts do not depend on how many blocks run side by side, so that some may be lost: probes by themselves cost some,
 * too, and a kernel that is launched once has no other launch for them. */
enum { BLOCKS_FACTOR = 2 };

/* Bytes of local memory that a call of a snippet takes: no register has spilled for that. */
enum { FRAME_BYTES = 64 };

/* A function's share of an SM; -1: the driver does not say. */
struct demand {
    int blocks, local;
};

static struct demand demand_of(CUfunction function, const struct launch *launch)
{
    struct demand demand = {-1, -1};
    const uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    if (!function || !threads || threads > 1024)
        return demand;
    if (REAL_OR_NOT_FOUND(cuOccupancyMaxActiveBlocksPerMultiprocessor, &demand.blocks, function, (int)threads,
                          launch->shared) != CUDA_SUCCESS)
        demand.blocks = -1;
    if (REAL_OR_NOT_FOUND(cuFuncGetAttribute, &demand.local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function) !=
        CUDA_SUCCESS)
        demand.local = -1;
    return demand;
}

const struct reason *fused_refused(const struct kernel_probe *fused, const struct launch *launch)
{
    const struct variant *variant = variants_newest(launch->instance, fused);
    const struct demand without = demand_of(registry_function(launch->instance, launch->function), launch);
    const struct demand with = demand_of(variant ? variant->function : NULL, launch);
    char numbers[2][REASON_NUMBER_SIZE];
    if (without.blocks >= 0 && with.blocks >= 0 && with.blocks * BLOCKS_FACTOR < without.blocks)
        return reason_with(FUSED_BLOCKS, reason_number(numbers[0], (uint64_t)with.blocks),
                           reason_number(numbers[1], (uint64_t)without.blocks));
    if (without.local >= 0 && with.local > without.local + FRAME_BYTES)
        return reason_with(FUSED_SPILLS, reason_number(numbers[0], (uint64_t)(with.local - without.local)));
    return NULL;
}

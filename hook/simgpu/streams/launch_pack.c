/* Launches are checked and their parameters packed as the program submits them. */

#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "launch.h"
#include "machine.h"
#include "module.h"
#include "streams.h"

static bool shape_is_valid(const struct launch *launch)
{
    const unsigned *grid = launch->grid, *block = launch->block;
    for (int i = 0; i < 3; i++) {
        if (!grid[i] || !block[i])
            return false;
    }
    return grid[0] <= GRID_MAX_X && grid[1] <= GRID_MAX_YZ && grid[2] <= GRID_MAX_YZ && block[0] <= BLOCK_MAX_X &&
           block[1] <= BLOCK_MAX_Y && block[2] <= BLOCK_MAX_Z;
}

static CUresult check(const struct launch *launch, const struct kernel *kernel)
{
    if (!stream_exists(launch->stream))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!shape_is_valid(launch) || (launch->parameters && launch->extra))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (threads > BLOCK_MAX_THREADS || threads > kernel->max_threads)
        return CUDA_ERROR_INVALID_VALUE;
    if (launch->dynamic_shared_bytes > (unsigned)kernel_dynamic_shared_limit(kernel))
        return CUDA_ERROR_INVALID_VALUE;
    if (!cluster_is_valid(kernel, launch->cluster, launch->grid) ||
        !cluster_is_valid(kernel, kernel->cluster, launch->grid))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    uint64_t resident = kernel_blocks_per_sm(kernel, (unsigned)threads, launch->dynamic_shared_bytes);
    if (!resident)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    bool too_large = launch->cooperative && blocks > resident * driver.sm_count;
    return too_large ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_SUCCESS;
}

/* The parameters as one buffer that the program made: `extra`. It may end within the last one, the rest of which is
 * zero then, as it is in PACKED. */
static CUresult copy_buffer(void **extra, const struct kernel *kernel, uint8_t *packed)
{
    const size_t packed_bytes = kernel->parameter_bytes;
    const size_t last = kernel->parameter_count ? kernel->parameters[kernel->parameter_count - 1].offset : 0;
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; *extra != LAUNCH_PARAM_END; extra += 2) {
        if (*extra == LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(const size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (packed_bytes && (bytes <= last || !buffer))
        return CUDA_ERROR_INVALID_VALUE;
    if (packed_bytes)
        memcpy(packed, buffer, bytes < packed_bytes ? bytes : packed_bytes);
    return CUDA_SUCCESS;
}

static CUresult pack(const struct launch *launch, const struct kernel *kernel, uint8_t *packed)
{
    if (launch->extra)
        return copy_buffer(launch->extra, kernel, packed);
    if (kernel->parameter_count && !launch->parameters)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        memcpy(packed + kernel->parameters[i].offset, launch->parameters[i], kernel->parameters[i].size);
    }
    return CUDA_SUCCESS;
}

CUresult launch_pack(const struct launch *launch, struct kernel_call *call)
{
    struct kernel *kernel = kernel_of(launch->function);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = kernel_describe(kernel);
    if (!result)
        result = check(launch, kernel);
    if (result)
        return result;
    *call = (struct kernel_call){.function = launch->function,
                                 .shared_bytes = launch->dynamic_shared_bytes,
                                 .cooperative = launch->cooperative,
                                 .packed = calloc(1, kernel->parameter_bytes + 1),
                                 .packed_bytes = kernel->parameter_bytes};
    memcpy(call->grid, launch->grid, sizeof call->grid);
    memcpy(call->block, launch->block, sizeof call->block);
    memcpy(call->cluster, launch->cluster, sizeof call->cluster);
    if (!call->packed)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = pack(launch, kernel, call->packed);
    if (result)
        free(call->packed);
    return result;
}

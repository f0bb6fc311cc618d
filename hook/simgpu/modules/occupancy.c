/* Resident blocks of a kernel per SM. The simulated machine has no register allocation, so registers are no
 * limit. */

#include <string.h>

#include "cluster.h"
#include "module.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int kernel_dynamic_shared_limit(const struct kernel *kernel)
{
    int without_asking = BLOCK_SHARED_BYTES - (int)kernel->static_shared_bytes;
    if (without_asking < 0)
        without_asking = 0;
    return kernel->max_dynamic_shared > without_asking ? kernel->max_dynamic_shared : without_asking;
}

unsigned kernel_blocks_per_sm(const struct kernel *kernel, unsigned threads, size_t dynamic_shared_bytes)
{
    uint64_t warps = (threads + WARP_LANES - 1) / WARP_LANES;
    uint64_t shared_bytes = kernel->static_shared_bytes + dynamic_shared_bytes;
    if (!threads || threads > BLOCK_MAX_THREADS || shared_bytes > (uint64_t)driver.generation->sm_shared_bytes)
        return 0;
    uint64_t blocks = smaller(SM_MAX_BLOCKS, SM_MAX_THREADS / WARP_LANES / warps);
    if (shared_bytes)
        blocks = smaller(blocks, (uint64_t)driver.generation->sm_shared_bytes / shared_bytes);
    return (unsigned)blocks;
}

static CUresult answer(int *blocks, const void *handle, int threads, size_t dynamic_shared_bytes)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    if (!blocks || threads <= 0)
        return leave(CUDA_ERROR_INVALID_VALUE);
    result = kernel_describe(kernel);
    if (!result)
        *blocks = (int)kernel_blocks_per_sm(kernel, (unsigned)threads, dynamic_shared_bytes);
    return leave(result);
}

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads, size_t dynamic_bytes)
{
    return answer(blocks, handle, threads, dynamic_bytes);
}

API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle, int threads,
                                                         size_t dynamic_bytes, unsigned flags)
{
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : answer(blocks, handle, threads, dynamic_bytes);
}

/* Bytes of dynamic shared memory of a block of that many threads, as the program says. */
typedef size_t (*shared_of_threads)(int threads);

struct potential {
    int threads, blocks;
};

/* Of all sizes in whole warps the one that keeps most threads of an SM busy; of several the largest, as the runtime
 * says. */
static struct potential best_block(const struct kernel *kernel, shared_of_threads shared, size_t bytes, int limit)
{
    int most = (int)kernel->max_threads;
    struct potential best = {0, 0};
    if (limit > 0 && limit < most)
        most = limit;
    for (int threads = most; threads > 0; threads -= threads % WARP_LANES ? threads % WARP_LANES : WARP_LANES) {
        size_t dynamic = shared ? shared(threads) : bytes;
        if (dynamic > (size_t)kernel_dynamic_shared_limit(kernel))
            continue;
        int blocks = (int)kernel_blocks_per_sm(kernel, (unsigned)threads, dynamic);
        if (blocks * threads > best.blocks * best.threads)
            best = (struct potential){threads, blocks};
    }
    return best;
}

API cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle, shared_of_threads shared,
                                              size_t bytes, int limit, unsigned flags)
{
    struct kernel *found;
    CUresult result = enter_kernel(handle, &found);
    if (result)
        return result;
    if (!grid || !block || limit < 0 || flags > 1)
        return leave(CUDA_ERROR_INVALID_VALUE);
    result = kernel_describe(found);
    const struct kernel kernel = *found;
    leave(result); /* the program's function may call us */
    if (result)
        return result;
    const struct potential best = best_block(&kernel, shared, bytes, limit);
    *block = best.threads;
    *grid = best.blocks * (int)driver.sm_count;
    return best.threads ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle, shared_of_threads shared, size_t bytes,
                                     int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, shared, bytes, limit, 0);
}

API cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int blocks, int threads)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    if (!bytes || blocks <= 0 || threads <= 0)
        return leave(CUDA_ERROR_INVALID_VALUE);
    result = kernel_describe(kernel);
    if (result)
        return leave(result);
    if (kernel_blocks_per_sm(kernel, (unsigned)threads, 0) < (unsigned)blocks)
        return leave(CUDA_ERROR_INVALID_VALUE);
    const struct generation *generation = driver.generation;
    *bytes =
        smaller((uint64_t)generation->sm_shared_bytes / (uint64_t)blocks, (uint64_t)generation->block_shared_bytes);
    *bytes -= kernel->static_shared_bytes;
    return leave(CUDA_SUCCESS);
}

/* Clusters of the shape that a configuration asks for, or the kernel itself. */
API cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    if (!clusters || !config || (config->attribute_count && !config->attributes))
        return leave(CUDA_ERROR_INVALID_VALUE);
    result = kernel_describe(kernel);
    if (result)
        return leave(result);
    unsigned cluster[3];
    memcpy(cluster, kernel->cluster, sizeof cluster);
    cluster_of_config(config, cluster);
    const unsigned grid[3] = {config->grid_x, config->grid_y, config->grid_z};
    if (!cluster_is_valid(kernel, cluster, grid))
        return leave(CUDA_ERROR_INVALID_CLUSTER_SIZE);
    unsigned blocks = cluster[0] ? cluster[0] * cluster[1] * cluster[2] : 1;
    unsigned threads = config->block_x * config->block_y * config->block_z;
    *clusters = (int)(kernel_blocks_per_sm(kernel, threads, config->shared_bytes) * driver.sm_count / blocks);
    return leave(CUDA_SUCCESS);
}

API cuOccupancyMaxPotentialClusterSize(int *blocks, CUfunction handle, const CUlaunchConfig *config)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    if (!blocks || !config)
        return leave(CUDA_ERROR_INVALID_VALUE);
    result = kernel_describe(kernel);
    if (result)
        return leave(result);
    unsigned threads = config->block_x * config->block_y * config->block_z;
    uint64_t resident = (uint64_t)kernel_blocks_per_sm(kernel, threads, config->shared_bytes) * driver.sm_count;
    *blocks = (int)smaller(resident, cluster_limit(kernel));
    return leave(CUDA_SUCCESS);
}

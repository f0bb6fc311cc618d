/* How many blocks of a kernel an SM holds. The simulated machine has no register allocation, so registers are no
 * limit. */

#include "machine.h"
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
    if (!threads || threads > BLOCK_MAX_THREADS || shared_bytes > SM_SHARED_BYTES)
        return 0;
    uint64_t blocks = smaller(SM_MAX_BLOCKS, SM_MAX_THREADS / WARP_LANES / warps);
    return (unsigned)(shared_bytes ? smaller(blocks, SM_SHARED_BYTES / shared_bytes) : blocks);
}

static CUresult answer(int *blocks, const void *handle, int threads, size_t dynamic_shared_bytes)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    struct kernel *kernel = kernel_of(handle);
    if (!kernel)
        return leave(CUDA_ERROR_INVALID_HANDLE);
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

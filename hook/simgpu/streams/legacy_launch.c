/* Launches as before CUDA 4: shape and parameters are set on the function by calls of their own, then cuLaunchGrid. The
 * real driver still has them, and PyCUDA calls some. */

#include <stdlib.h>
#include <string.h>

#include "current.h"
#include "machine.h"
#include "module.h"

enum { PARAMETER_BYTES = 4096 };

API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,
                   void **extra);

/* Locks the driver and finds the kernel. Fails, without the lock, for a handle that is none. */
static CUresult enter_legacy(CUfunction function, struct kernel **kernel)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    *kernel = kernel_of(function);
    return *kernel ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_HANDLE);
}

API cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
    struct kernel *kernel;
    CUresult result = enter_legacy(function, &kernel);
    if (result)
        return result;
    bool fits = x > 0 && y > 0 && z > 0 && x <= BLOCK_MAX_X && y <= BLOCK_MAX_Y && z <= BLOCK_MAX_Z;
    if (!fits || (int64_t)x * y * z > BLOCK_MAX_THREADS)
        return leave(CUDA_ERROR_INVALID_VALUE);
    kernel->legacy_launch.block[0] = (unsigned)x;
    kernel->legacy_launch.block[1] = (unsigned)y;
    kernel->legacy_launch.block[2] = (unsigned)z;
    return leave(CUDA_SUCCESS);
}

API cuFuncSetSharedSize(CUfunction function, unsigned bytes)
{
    struct kernel *kernel;
    CUresult result = enter_legacy(function, &kernel);
    if (result)
        return result;
    kernel->legacy_launch.shared_bytes = bytes;
    return leave(CUDA_SUCCESS);
}

API cuParamSetSize(CUfunction function, unsigned bytes)
{
    struct kernel *kernel;
    CUresult result = enter_legacy(function, &kernel);
    if (result)
        return result;
    if (bytes > PARAMETER_BYTES)
        return leave(CUDA_ERROR_INVALID_VALUE);
    kernel->legacy_launch.parameter_bytes = bytes;
    return leave(CUDA_SUCCESS);
}

static CUresult set_parameter(CUfunction function, int offset, const void *value, size_t bytes)
{
    struct kernel *kernel;
    CUresult result = enter_legacy(function, &kernel);
    if (result)
        return result;
    if (!value || offset < 0 || offset > PARAMETER_BYTES || bytes > PARAMETER_BYTES - (size_t)offset)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (!kernel->legacy_launch.parameters && !(kernel->legacy_launch.parameters = calloc(1, PARAMETER_BYTES)))
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    memcpy(kernel->legacy_launch.parameters + offset, value, bytes);
    return leave(CUDA_SUCCESS);
}

API cuParamSeti(CUfunction function, int offset, unsigned value)
{
    return set_parameter(function, offset, &value, sizeof value);
}

API cuParamSetf(CUfunction function, int offset, float value)
{
    return set_parameter(function, offset, &value, sizeof value);
}

API cuParamSetv(CUfunction function, int offset, void *value, unsigned bytes)
{
    return set_parameter(function, offset, value, bytes);
}

API cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    struct kernel *kernel;
    CUresult result = enter_legacy(function, &kernel);
    if (result)
        return result;
    const struct legacy_launch set = kernel->legacy_launch;
    uint8_t parameters[PARAMETER_BYTES] = {0};
    size_t bytes = set.parameter_bytes;
    if (set.parameters)
        memcpy(parameters, set.parameters, sizeof parameters);
    leave(CUDA_SUCCESS);
    if (width <= 0 || height <= 0 || !set.block[0])
        return CUDA_ERROR_INVALID_VALUE;
    void *extra[] = {LAUNCH_PARAM_BUFFER_POINTER, parameters, LAUNCH_PARAM_BUFFER_SIZE, &bytes, LAUNCH_PARAM_END};
    return cuLaunchKernel(function, (unsigned)width, (unsigned)height, 1, set.block[0], set.block[1], set.block[2],
                          set.shared_bytes, stream, NULL, extra);
}

API cuLaunchGrid(CUfunction function, int width, int height)
{
    return cuLaunchGridAsync(function, width, height, NULL);
}

API cuLaunch(CUfunction function)
{
    return cuLaunchGridAsync(function, 1, 1, NULL);
}

/* Wrappers of the calls that launch in steps, as before CUDA 4. */

#include <stdlib.h>

#include "launch_intercept.h"
#include "legacy_launch.h"
#include "real.h"

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
    const CUresult result = REAL_OR_NOT_FOUND(cuFuncSetBlockShape, function, x, y, z);
    if (result == CUDA_SUCCESS)
        legacy_launch_note_block(function, x, y, z);
    return result;
}

CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes)
{
    const CUresult result = REAL_OR_NOT_FOUND(cuFuncSetSharedSize, function, bytes);
    if (result == CUDA_SUCCESS)
        legacy_launch_note_shared(function, bytes);
    return result;
}

CUresult cuParamSetSize(CUfunction function, unsigned int bytes)
{
    const CUresult result = REAL_OR_NOT_FOUND(cuParamSetSize, function, bytes);
    if (result == CUDA_SUCCESS)
        legacy_launch_note_size(function, bytes);
    return result;
}

CUresult cuParamSeti(CUfunction function, int offset, unsigned int value)
{
    const CUresult result = REAL_OR_NOT_FOUND(cuParamSeti, function, offset, value);
    if (result == CUDA_SUCCESS)
        legacy_launch_note_values(function, offset, &value, sizeof value);
    return result;
}

CUresult cuParamSetf(CUfunction function, int offset, float value)
{
    const CUresult result = REAL_OR_NOT_FOUND(cuParamSetf, function, offset, value);
    if (result == CUDA_SUCCESS)
        legacy_launch_note_values(function, offset, &value, sizeof value);
    return result;
}

CUresult cuParamSetv(CUfunction function, int offset, void *values, unsigned int bytes)
{
    const CUresult result = REAL_OR_NOT_FOUND(cuParamSetv, function, offset, values, bytes);
    if (result == CUDA_SUCCESS)
        legacy_launch_note_values(function, offset, values, bytes);
    return result;
}

static CUresult launch_set(CUfunction function, int width, int height, CUstream stream, struct legacy_launch *set)
{
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, set->values, CU_LAUNCH_PARAM_BUFFER_SIZE, &set->size,
                     CU_LAUNCH_PARAM_END};
    struct launch launch = {.form = LAUNCH_GRID,
                            .function = function,
                            .grid = {(uint32_t)width, (uint32_t)height, 1},
                            .block = {set->block[0], set->block[1], set->block[2]},
                            .shared = set->shared,
                            .stream = stream,
                            .extra = extra};
    return launch_intercept(&launch);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    struct legacy_launch *set = width > 0 && height > 0 ? legacy_launch_get(function) : NULL;
    if (!set)
        return REAL_OR_NOT_FOUND(cuLaunchGridAsync, function, width, height, stream);
    const CUresult result = launch_set(function, width, height, stream, set);
    free(set);
    return result;
}

CUresult cuLaunchGrid(CUfunction function, int width, int height)
{
    return cuLaunchGridAsync(function, width, height, NULL);
}

CUresult cuLaunch(CUfunction function)
{
    return cuLaunchGridAsync(function, 1, 1, NULL);
}

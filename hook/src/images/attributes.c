/* Wrappers of the functions that set attributes of kernels: what holds for the original must hold for
 * its probed function. The program gets the driver's answer for the original. */
#include "hook_state.h"
#include "real.h"
#include "variants.h"

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    CUresult result = REAL_OR_NOT_FOUND(cuFuncSetAttribute, function, attribute, value);
    if (result == CUDA_SUCCESS && hook_active())
        variants_set_attribute(function, attribute, value, -1);
    return result;
}

CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device)
{
    CUresult result = REAL_OR_NOT_FOUND(cuKernelSetAttribute, attribute, value, kernel, device);
    if (result == CUDA_SUCCESS && hook_active())
        variants_set_attribute(kernel, attribute, value, device);
    return result;
}

CUresult cuFuncSetCacheConfig(CUfunction function, int config)
{
    CUresult result = REAL_OR_NOT_FOUND(cuFuncSetCacheConfig, function, config);
    if (result == CUDA_SUCCESS && hook_active())
        variants_set_cache(function, config, -1);
    return result;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device)
{
    CUresult result = REAL_OR_NOT_FOUND(cuKernelSetCacheConfig, kernel, config, device);
    if (result == CUDA_SUCCESS && hook_active())
        variants_set_cache(kernel, config, device);
    return result;
}

/* Properties of contexts that programs read and set. */

#include "current.h"

/* The context of a handle, or the current one for NULL. Locks the driver unless it fails. */
static CUresult enter_context(CUcontext handle, struct context **context)
{
    if (!handle)
        return enter(context);
    CUresult result = enter_driver();
    if (result)
        return result;
    *context = handle_object(HANDLE_CONTEXT, handle);
    if (!*context)
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    return (*context)->fault ? leave((*context)->fault) : CUDA_SUCCESS;
}

API cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
    struct context *context;
    CUresult result = enter_context(handle, &context);
    if (result)
        return result;
    if (!device)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *device = 0;
    return leave(CUDA_SUCCESS);
}

static CUresult current_device(CUdevice *device)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!device)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *device = 0;
    return leave(CUDA_SUCCESS);
}

API cuCtxGetDevice(CUdevice *device)
{
    return current_device(device);
}

/* Every launch has ended when its call returned: there is nothing to wait for, only a failure to report. */
static CUresult check_context(CUcontext handle)
{
    struct context *context;
    CUresult result = enter_context(handle, &context);
    return result ? result : leave(CUDA_SUCCESS);
}

API cuCtxSynchronize(void)
{
    return check_context(NULL);
}
API cuCtxSynchronize_v2(CUcontext handle)
{
    return check_context(handle);
}

API cuCtxGetApiVersion(CUcontext handle, unsigned *version)
{
    struct context *context;
    CUresult result = enter_context(handle, &context);
    if (result)
        return result;
    if (!version)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *version = context->api_version;
    return leave(CUDA_SUCCESS);
}

API cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    struct context *context;
    CUresult result = enter_context(handle, &context);
    if (result)
        return result;
    if (!id)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *id = context->id;
    return leave(CUDA_SUCCESS);
}

API cuCtxGetFlags(unsigned *flags)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!flags)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *flags = context->flags;
    return leave(CUDA_SUCCESS);
}

API cuCtxSetFlags(unsigned flags)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    context->flags = flags;
    return leave(CUDA_SUCCESS);
}

API cuCtxGetLimit(size_t *value, unsigned limit)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!value)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (limit >= LIMIT_COUNT)
        return leave(CUDA_ERROR_UNSUPPORTED_LIMIT);
    *value = context->limits[limit];
    return leave(CUDA_SUCCESS);
}

API cuCtxSetLimit(unsigned limit, size_t value)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (limit >= LIMIT_COUNT)
        return leave(CUDA_ERROR_UNSUPPORTED_LIMIT);
    context->limits[limit] = value;
    return leave(CUDA_SUCCESS);
}

API cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = 0;
    return leave(CUDA_SUCCESS);
}

/* There are no caches: a preference is accepted and has no effect, as on a device without a configurable cache. */
API cuCtxSetCacheConfig(unsigned preference)
{
    (void)preference;
    return check_context(NULL);
}

API cuCtxGetCacheConfig(unsigned *preference)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!preference)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *preference = 0;
    return leave(CUDA_SUCCESS);
}

API cuCtxResetPersistingL2Cache(void)
{
    return check_context(NULL);
}

API cuProfilerStart(void)
{
    return check_context(NULL);
}
API cuProfilerStop(void)
{
    return check_context(NULL);
}

/* Contexts: the primary one, and those that a program creates. */

#include <stdlib.h>

#include "current.h"
#include "events.h"
#include "module.h"
#include "server.h"
#include "streams.h"

static struct context *primary;
static unsigned primary_references, primary_flags;

static const size_t DEFAULT_LIMITS[LIMIT_COUNT] = {1024, 1 << 20, 8 << 20, 2, 2048, 64};

static CUresult create(unsigned flags, struct context **created)
{
    static uint64_t last_id;
    CUresult result = server_start();
    if (result)
        return result;
    struct context *context = driver_has_room() ? calloc(1, sizeof *context) : NULL;
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *context = (struct context){.flags = flags, .api_version = 3020, .id = ++last_id};
    for (int i = 0; i < LIMIT_COUNT; i++)
        context->limits[i] = DEFAULT_LIMITS[i];
    context->handle = handle_create(HANDLE_CONTEXT, context);
    if (!context->handle) {
        free(context);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *created = context;
    return CUDA_SUCCESS;
}

/* Ends what belongs to a context: its modules, streams, events and memory. The caller holds the lock. */
static void clear(struct context *context)
{
    modules_unload_owner(context);
    streams_destroy_owner(context);
    events_destroy_owner(context);
    heap_release_owner(&driver.device_heap, context);
    heap_release_owner(&driver.host_heap, context);
}

static void destroy(struct context *context)
{
    clear(context);
    handle_destroy(context->handle);
    free(context);
}

static CUresult create_current(CUcontext *handle, unsigned flags, CUdevice device)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (!handle)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (device != 0)
        return leave(CUDA_ERROR_INVALID_DEVICE);
    struct context *context;
    result = create(flags, &context);
    if (result)
        return leave(result);
    result = context_push(context->handle);
    if (result)
        destroy(context);
    if (!result)
        *handle = context->handle;
    return leave(result);
}

API cuCtxCreate_v2(CUcontext *handle, unsigned flags, CUdevice device)
{
    return create_current(handle, flags, device);
}
SAME_AS(cuCtxCreate, cuCtxCreate_v2);

API cuCtxCreate_v3(CUcontext *handle, void *affinity, int count, unsigned flags, CUdevice device)
{
    return affinity || count ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create_current(handle, flags, device);
}

API cuCtxCreate_v4(CUcontext *handle, void *parameters, unsigned flags, CUdevice device)
{
    return parameters ? CUDA_ERROR_NOT_SUPPORTED : create_current(handle, flags, device);
}

API cuCtxDestroy_v2(CUcontext handle)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    struct context *context = handle_object(HANDLE_CONTEXT, handle);
    if (!context || context == primary)
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (context_top() == handle)
        context_pop(NULL);
    destroy(context);
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuCtxDestroy, cuCtxDestroy_v2);
SAME_AS(cuCtxDetach, cuCtxDestroy_v2);

API cuCtxPushCurrent_v2(CUcontext handle)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    return leave(handle_object(HANDLE_CONTEXT, handle) ? context_push(handle) : CUDA_ERROR_INVALID_CONTEXT);
}
SAME_AS(cuCtxPushCurrent, cuCtxPushCurrent_v2);

API cuCtxPopCurrent_v2(CUcontext *handle)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    return leave(context_pop(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}
SAME_AS(cuCtxPopCurrent, cuCtxPopCurrent_v2);

API cuCtxSetCurrent(CUcontext handle)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (handle && !handle_object(HANDLE_CONTEXT, handle))
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    context_pop(NULL);
    return leave(handle ? context_push(handle) : CUDA_SUCCESS);
}

API cuCtxGetCurrent(CUcontext *handle)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (!handle)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *handle = context_top();
    return leave(CUDA_SUCCESS);
}

API cuDevicePrimaryCtxRetain(CUcontext *handle, CUdevice device)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (!handle)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (device != 0)
        return leave(CUDA_ERROR_INVALID_DEVICE);
    if (!primary)
        result = create(primary_flags, &primary);
    if (result)
        return leave(result);
    primary_references++;
    *handle = primary->handle;
    return leave(CUDA_SUCCESS);
}

static void end_primary(void)
{
    if (primary)
        destroy(primary);
    primary = NULL;
    primary_references = 0;
}

API cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (device != 0)
        return leave(CUDA_ERROR_INVALID_DEVICE);
    if (!primary)
        return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (--primary_references == 0)
        end_primary();
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

/* The handle stays valid, as the real driver's does: other users of the primary context hold it. */
API cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (device != 0)
        return leave(CUDA_ERROR_INVALID_DEVICE);
    if (primary) {
        clear(primary);
        primary->fault = CUDA_SUCCESS;
    }
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (device != 0)
        return leave(CUDA_ERROR_INVALID_DEVICE);
    primary_flags = flags;
    if (primary)
        primary->flags = flags;
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

API cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (device != 0)
        return leave(CUDA_ERROR_INVALID_DEVICE);
    if (flags)
        *flags = primary_flags;
    if (active)
        *active = primary != NULL;
    return leave(CUDA_SUCCESS);
}

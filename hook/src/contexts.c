/* Wrappers of the functions that destroy contexts: records that lie there are fetched first, and nothing
 * of ours outlives the context. */
#include "buffers.h"
#include "lifetime.h"
#include "real.h"
#include "variants.h"

static void leave_context(CUcontext context)
{
    if (hook_active() && context)
        hook_flush();
}

static CUresult left_context(CUcontext context, CUresult result)
{
    if (hook_active() && context && result == CUDA_SUCCESS) {
        variants_forget(context, -1);
        buffers_forget(context, -1);
    }
    return result;
}

#define DESTROY_CONTEXT(function, context)                                         \
    do {                                                                           \
        leave_context(context);                                                    \
        return left_context(context, REAL_OR_NOT_FOUND(function, context));        \
    } while (0)

CUresult cuCtxDestroy(CUcontext context)
{
    DESTROY_CONTEXT(cuCtxDestroy, context);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    DESTROY_CONTEXT(cuCtxDestroy_v2, context);
}

/* Detaching destroys the context when it was the last attachment; losing our memory of one that lives
 * on costs a reload. */
CUresult cuCtxDetach(CUcontext context)
{
    DESTROY_CONTEXT(cuCtxDetach, context);
}

CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
    if (hook_active())
        hook_flush();
    return REAL_OR_NOT_FOUND(cuGreenCtxDestroy, context);
}

static CUresult left_primary(CUdevice device, CUresult result)
{
    unsigned int flags;
    int alive = 0;
    if (!hook_active() || result != CUDA_SUCCESS)
        return result;
    if (REAL_OR_NOT_FOUND(cuDevicePrimaryCtxGetState, device, &flags, &alive) == CUDA_SUCCESS && alive)
        return result; /* others still hold it */
    variants_forget(NULL, device);
    buffers_forget(NULL, device);
    return result;
}

#define LEAVE_PRIMARY(function, device)                                     \
    do {                                                                    \
        if (hook_active())                                                  \
            hook_flush();                                 \
        return left_primary(device, REAL_OR_NOT_FOUND(function, device));   \
    } while (0)

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    LEAVE_PRIMARY(cuDevicePrimaryCtxRelease, device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    LEAVE_PRIMARY(cuDevicePrimaryCtxRelease_v2, device);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    LEAVE_PRIMARY(cuDevicePrimaryCtxReset, device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    LEAVE_PRIMARY(cuDevicePrimaryCtxReset_v2, device);
}

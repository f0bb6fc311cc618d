/* Wrappers of the functions that destroy contexts: records that lie there are fetched first, and nothing
 * of ours outlives the context. */
#include "allocations.h"
#include "background.h"
#include "buffers.h"
#include "graph_twin.h"
#include "hook_state.h"
#include "lifetime.h"
#include "real.h"
#include "timers.h"
#include "variants.h"

static void leave_context(CUcontext context, CUdevice device)
{
    if (!hook_active())
        return;
    background_leave(NULL);
    hook_flush();
    twins_leave(context);
    timers_leave(context, device);
}

static void forget(CUcontext context, CUdevice device)
{
    variants_forget(context, device);
    buffers_forget(context, device);
    timers_forget(context, device);
    allocations_forget(context, device);
}

static CUresult left_context(CUcontext context, CUresult result)
{
    if (hook_active() && context && result == CUDA_SUCCESS)
        forget(context, -1);
    return result;
}

#define DESTROY_CONTEXT(function, context)                                  \
    do {                                                                    \
        leave_context(context, -1);                                         \
        return left_context(context, REAL_OR_NOT_FOUND(function, context)); \
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

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    CUcontext context = NULL;
    if (hook_active() && REAL_OR_NOT_FOUND(cuCtxFromGreenCtx, &context, green) != CUDA_SUCCESS)
        context = NULL;
    leave_context(context, -1);
    return left_context(context, REAL_OR_NOT_FOUND(cuGreenCtxDestroy, green));
}

static CUresult released(CUdevice device, CUresult result)
{
    unsigned int flags;
    int alive = 0;
    if (!hook_active() || result != CUDA_SUCCESS)
        return result;
    if (REAL_OR_NOT_FOUND(cuDevicePrimaryCtxGetState, device, &flags, &alive) != CUDA_SUCCESS || !alive)
        forget(NULL, device); /* nobody else holds it */
    return result;
}

/* Whoever holds it: what was in it is gone. */
static CUresult reset(CUdevice device, CUresult result)
{
    if (hook_active() && result == CUDA_SUCCESS)
        forget(NULL, device);
    return result;
}

#define LEAVE_PRIMARY(left, function, device)                     \
    do {                                                          \
        leave_context(NULL, device);                              \
        return left(device, REAL_OR_NOT_FOUND(function, device)); \
    } while (0)

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    LEAVE_PRIMARY(released, cuDevicePrimaryCtxRelease, device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    LEAVE_PRIMARY(released, cuDevicePrimaryCtxRelease_v2, device);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    LEAVE_PRIMARY(reset, cuDevicePrimaryCtxReset, device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    LEAVE_PRIMARY(reset, cuDevicePrimaryCtxReset_v2, device);
}

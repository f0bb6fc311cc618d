/* Wrappers of the functions that hold contexts and destroy them: records that are there are fetched first, and nothing
 * of tui-probe outlives the context. The driver may give the handle of one that is gone to the next one immediately, on any
 * thread, so that the old one is forgotten in two steps: before the call its handle leads to nothing of tui-probe, and after
 * it what it led to is freed, or found again if the context is still there. */
#include "allocations.h"
#include "background.h"
#include "buffers.h"
#include "context_holds.h"
#include "drain.h"
#include "drain_chunk.h"
#include "event_log.h"
#include "graph_probed_copy.h"
#include "hook_state.h"
#include "memory_pressure.h"
#include "real.h"
#include "registry.h"
#include "settings.h"
#include "signals.h"
#include "timers.h"
#include "unloading.h"
#include "variants.h"

static void fetch_records(CUcontext context)
{
    const unsigned patience = settings.exit_timeout * 1000;
    if (hook_is_on() && !drain_context(context, patience))
        event_log("[exec] gave up waiting for records after %u ms\n", patience);
}

/* CERTAIN: unless the call fails, it is gone. */
static void leave_context(CUcontext context, bool certain)
{
    signals_hold();
    background_leave_context(context);
    fetch_records(context);
    probed_copies_leave(context, certain);
    timers_leave(context);
    variants_leave(context);
    registry_leave_context(context);
    buffers_leave(context);
    drain_leave_memory();
    allocations_leave(context);
    signals_release();
}

static void settle_context(CUcontext context, bool gone)
{
    signals_hold();
    if (gone) {
        context_holds_forget(context);
        probed_copies_forget(context);
    }
    variants_settle(context, gone);
    unloading_settle_context(context, gone);
    buffers_settle(context, gone);
    timers_settle(context, gone);
    allocations_settle(context, gone);
    signals_release();
}

/* A primary context is not destroyed so. */
static bool is_destroyed(CUcontext context)
{
    return hook_active() && context && !context_is_primary(context);
}

#define DESTROY_CONTEXT(destroyed, context, function, handle)  \
    do {                                                       \
        if (!(destroyed))                                      \
            return REAL_OR_NOT_FOUND(function, handle);        \
        leave_context(context, true);                          \
        CUresult result = REAL_OR_NOT_FOUND(function, handle); \
        settle_context(context, result == CUDA_SUCCESS);       \
        return result;                                         \
    } while (0)

CUresult cuCtxDestroy(CUcontext context)
{
    DESTROY_CONTEXT(is_destroyed(context), context, cuCtxDestroy, context);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    DESTROY_CONTEXT(is_destroyed(context), context, cuCtxDestroy_v2, context);
}

CUresult cuCtxAttach(CUcontext *context, unsigned int flags)
{
    CUresult result = REAL_OR_NOT_FOUND(cuCtxAttach, context, flags);
    if (result == CUDA_SUCCESS && hook_active())
        context_attached(*context);
    return result;
}

CUresult cuCtxDetach(CUcontext context)
{
    DESTROY_CONTEXT(is_destroyed(context) && !context_stays_attached(context), context, cuCtxDetach, context);
}

static CUcontext context_of_green(CUgreenCtx green)
{
    CUcontext context = NULL;
    return hook_active() && REAL_OR_NOT_FOUND(cuCtxFromGreenCtx, &context, green) == CUDA_SUCCESS ? context : NULL;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    CUcontext context = context_of_green(green);
    DESTROY_CONTEXT(context, context, cuGreenCtxDestroy, green);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!hook_active())
        return REAL_OR_NOT_FOUND(cuDevicePrimaryCtxRetain, context, device);
    primary_context_lock(device);
    CUresult result = WITH_MEMORY(cuDevicePrimaryCtxRetain, context, device);
    if (result == CUDA_SUCCESS)
        primary_context_retained(device, *context);
    primary_context_unlock(device);
    return result;
}

/* The primary context of DEVICE if the call that follows may end it; locks the device. */
static CUcontext leave_primary(CUdevice device, bool last)
{
    primary_context_lock(device);
    CUcontext context = last || primary_context_is_held_once(device) ? primary_context_of(device) : NULL;
    if (context)
        leave_context(context, last);
    return context;
}

/* Others may hold it whom we do not know. */
static CUresult released(CUdevice device, CUcontext context, CUresult result)
{
    if (result == CUDA_SUCCESS)
        primary_context_released(device);
    if (context)
        settle_context(context, !primary_context_is_active(device));
    primary_context_unlock(device);
    return result;
}

/* All that was in it is gone, no matter who holds it. */
static CUresult was_reset(CUdevice device, CUcontext context, CUresult result)
{
    if (context)
        settle_context(context, result == CUDA_SUCCESS);
    primary_context_unlock(device);
    return result;
}

#define LEAVE_PRIMARY(settled, last, function, device)                        \
    do {                                                                      \
        if (!hook_active())                                                   \
            return REAL_OR_NOT_FOUND(function, device);                       \
        CUcontext context = leave_primary(device, last);                      \
        return settled(device, context, REAL_OR_NOT_FOUND(function, device)); \
    } while (0)

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    LEAVE_PRIMARY(released, false, cuDevicePrimaryCtxRelease, device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    LEAVE_PRIMARY(released, false, cuDevicePrimaryCtxRelease_v2, device);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    LEAVE_PRIMARY(was_reset, true, cuDevicePrimaryCtxReset, device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    LEAVE_PRIMARY(was_reset, true, cuDevicePrimaryCtxReset_v2, device);
}

/* Streams as programs make, wait for and ask about them. */

#include "capture.h"
#include "current.h"
#include "events.h"
#include "streams.h"

/* Locks the driver and checks a stream. Fails, without the lock, for a handle that is none. */
static CUresult enter_stream(CUstream handle, struct context **context)
{
    CUresult result = enter(context);
    if (result)
        return result;
    return stream_exists(handle) ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_HANDLE);
}

static CUresult create(CUstream *handle, unsigned flags, int priority)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!handle || flags > 1)
        return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(stream_create(context, flags, priority, handle));
}

API cuStreamCreate(CUstream *handle, unsigned flags)
{
    return create(handle, flags, 0);
}

/* There is one priority (cuCtxGetStreamPriorityRange): any other is clamped to it, as the real driver clamps. */
API cuStreamCreateWithPriority(CUstream *handle, unsigned flags, int priority)
{
    (void)priority;
    return create(handle, flags, 0);
}

API cuStreamDestroy_v2(CUstream handle)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    struct stream *stream = stream_of(handle);
    if (!stream)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    stream_destroy(stream);
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuStreamDestroy, cuStreamDestroy_v2);

API cuStreamSynchronize(CUstream handle)
{
    struct context *context;
    CUresult result = enter_stream(handle, &context);
    if (!result && capture_of(handle))
        return leave(capture_break(stream_capture(handle)));
    return result ? result : leave(CUDA_SUCCESS);
}
PER_THREAD_STREAM(cuStreamSynchronize);
SAME_AS(cuStreamQuery, cuStreamSynchronize);
SAME_AS(cuStreamQuery_ptsz, cuStreamSynchronize);

API cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
    struct context *context;
    CUresult result = enter_stream(handle, &context);
    if (result)
        return result;
    if (flags > 1)
        return leave(CUDA_ERROR_INVALID_VALUE);
    const struct capture_point *marked = event_capture(event);
    struct capture_point *point = stream_capture(handle);
    if (!marked)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!marked->capture && point && point->capture)
        return leave(flags ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (marked->capture && !point)
        return leave(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return leave(marked->capture ? capture_point_join(point, marked) : CUDA_SUCCESS);
}
PER_THREAD_STREAM(cuStreamWaitEvent);

API cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    struct context *context;
    CUresult result = enter_stream(handle, &context);
    if (result)
        return result;
    if (!flags)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *flags = stream_is_default(handle) ? 0 : stream_of(handle)->flags;
    return leave(CUDA_SUCCESS);
}
PER_THREAD_STREAM(cuStreamGetFlags);

API cuStreamGetPriority(CUstream handle, int *priority)
{
    struct context *context;
    CUresult result = enter_stream(handle, &context);
    if (result)
        return result;
    if (!priority)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *priority = stream_is_default(handle) ? 0 : stream_of(handle)->priority;
    return leave(CUDA_SUCCESS);
}
PER_THREAD_STREAM(cuStreamGetPriority);

API cuStreamGetId(CUstream handle, unsigned long long *id)
{
    struct context *context;
    CUresult result = enter_stream(handle, &context);
    if (result)
        return result;
    if (!id)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *id = handle == STREAM_PER_THREAD ? 2 : 1;
    if (!stream_is_default(handle))
        *id = stream_of(handle)->id;
    return leave(CUDA_SUCCESS);
}
PER_THREAD_STREAM(cuStreamGetId);

API cuStreamGetCtx(CUstream handle, CUcontext *answer)
{
    struct context *context;
    CUresult result = enter_stream(handle, &context);
    if (result)
        return result;
    if (!answer)
        return leave(CUDA_ERROR_INVALID_VALUE);
    const struct stream *stream = stream_is_default(handle) ? NULL : stream_of(handle);
    *answer = stream ? stream->owner->handle : context->handle;
    return leave(CUDA_SUCCESS);
}
PER_THREAD_STREAM(cuStreamGetCtx);

API cuStreamGetDevice(CUstream handle, CUdevice *device)
{
    struct context *context;
    CUresult result = enter_stream(handle, &context);
    if (result)
        return result;
    if (!device)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *device = 0;
    return leave(CUDA_SUCCESS);
}
PER_THREAD_STREAM(cuStreamGetDevice);

API cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t bytes, unsigned flags)
{
    (void)address, (void)bytes, (void)flags; /* managed memory is one memory here */
    struct context *context;
    CUresult result = enter_stream(handle, &context);
    return result ? result : leave(CUDA_SUCCESS);
}
PER_THREAD_STREAM(cuStreamAttachMemAsync);

/* Functions of the program that a stream runs, and how its calls bear with captures elsewhere. */

#include "capture.h"
#include "current.h"
#include "streams.h"
#include "work_kinds.h"

typedef void stream_callback(CUstream stream, CUresult status, void *data);

static CUresult run_function(const struct work *work)
{
    work->of.host.function(work->of.host.data);
    return CUDA_SUCCESS;
}

const struct work_kind host_work = {.type = NODE_HOST, .run = run_function};

static CUresult check(CUstream stream)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    return leave(stream_exists(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

/* Earlier work of the stream has ended, so the function runs now, without the driver's lock. */
API cuLaunchHostFunc(CUstream stream, host_function *function, void *data)
{
    CUresult result = check(stream);
    if (result)
        return result;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    if (capture_of(stream)) {
        struct work work = {.kind = &host_work, .of.host = {function, data}};
        return leave(capture_work(stream, &work));
    }
    driver_unlock();
    function(data);
    return CUDA_SUCCESS;
}
PER_THREAD_STREAM(cuLaunchHostFunc);

API cuStreamAddCallback(CUstream stream, stream_callback *callback, void *data, unsigned flags)
{
    CUresult result = check(stream);
    if (result)
        return result;
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    callback(stream, CUDA_SUCCESS, data);
    return CUDA_SUCCESS;
}
PER_THREAD_STREAM(cuStreamAddCallback);

API cuThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int current;
    if (!mode || *mode < 0 || *mode > 2)
        return CUDA_ERROR_INVALID_VALUE;
    int previous = current;
    current = *mode;
    *mode = previous;
    return CUDA_SUCCESS;
}

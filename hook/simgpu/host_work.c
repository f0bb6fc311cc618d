/* Functions of the program that a stream runs, and stream capture, which there is none of. */

#include "driver.h"
#include "stream.h"

typedef void host_function(void *data);
typedef void stream_callback(CUstream stream, CUresult status, void *data);

static CUresult check(CUstream stream)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    return leave(stream_exists(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

/* What came before on the stream has ended, so the function runs now, without the driver's lock. */
API cuLaunchHostFunc(CUstream stream, host_function *function, void *data)
{
    CUresult result = check(stream);
    if (result)
        return result;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
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

API cuStreamIsCapturing(CUstream stream, int *status)
{
    CUresult result = check(stream);
    if (result)
        return result;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    *status = 0;
    return CUDA_SUCCESS;
}
PER_THREAD_STREAM(cuStreamIsCapturing);

static CUresult capture_info(CUstream stream, int *status, uint64_t *id)
{
    CUresult result = check(stream);
    if (result)
        return result;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    *status = 0;
    if (id)
        *id = 0;
    return CUDA_SUCCESS;
}

API cuStreamGetCaptureInfo(CUstream stream, int *status, uint64_t *id)
{
    return capture_info(stream, status, id);
}
PER_THREAD_STREAM(cuStreamGetCaptureInfo);

/* The graph and its dependencies are set only while a capture is under way: never. */
API cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                              size_t *count)
{
    (void)graph, (void)nodes, (void)count;
    return capture_info(stream, status, id);
}
PER_THREAD_STREAM(cuStreamGetCaptureInfo_v2);

API cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                              const void **edges, size_t *count)
{
    (void)graph, (void)nodes, (void)edges, (void)count;
    return capture_info(stream, status, id);
}
PER_THREAD_STREAM(cuStreamGetCaptureInfo_v3);

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

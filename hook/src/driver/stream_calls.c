/* Wrappers of the functions that capture streams and destroy them. */
#include "buffers.h"
#include "executable.h"
#include "hook_state.h"
#include "real.h"
#include "streams.h"

/* While the lock is held, no one records an event of tui-probe on a stream that is about to be captured. */
static CUresult counted(CUresult result)
{
    if (result != CUDA_SUCCESS)
        streams_capture_failed();
    buffers_unlock();
    return result;
}

static void begin(CUstream stream)
{
    buffers_lock();
    buffers_mark_stream(stream);
    streams_capture_begins();
}

#define BEGIN_CAPTURE(function, ...)                              \
    do {                                                          \
        if (!hook_active())                                       \
            return REAL_OR_NOT_FOUND(function, __VA_ARGS__);      \
        begin(stream);                                            \
        return counted(REAL_OR_NOT_FOUND(function, __VA_ARGS__)); \
    } while (0)

CUresult cuStreamBeginCapture(CUstream stream)
{
    BEGIN_CAPTURE(cuStreamBeginCapture, stream);
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
    BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, stream);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    BEGIN_CAPTURE(cuStreamBeginCapture_v2, stream, mode);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode)
{
    BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, stream, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const void *dependencies, const void *data,
                                     size_t n, int mode)
{
    BEGIN_CAPTURE(cuStreamBeginCaptureToGraph, stream, graph, dependencies, data, n, mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const void *dependencies, const void *data,
                                          size_t n, int mode)
{
    BEGIN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz, stream, graph, dependencies, data, n, mode);
}

/* An invalidated or unjoined capture is over too, though the call that ends it reports an error. */
static CUresult ended(CUresult result)
{
    bool over = result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
                result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (hook_active() && over)
        streams_capture_ended();
    return result;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    return ended(REAL_OR_NOT_FOUND(cuStreamEndCapture, stream, graph));
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    return ended(REAL_OR_NOT_FOUND(cuStreamEndCapture_ptsz, stream, graph));
}

CUresult cuStreamDestroy(CUstream stream)
{
    buffers_leave_stream(stream);
    executables_leave_stream(stream);
    return REAL_OR_NOT_FOUND(cuStreamDestroy, stream);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    buffers_leave_stream(stream);
    executables_leave_stream(stream);
    return REAL_OR_NOT_FOUND(cuStreamDestroy_v2, stream);
}

#include "streams.h"

#include <stdatomic.h>

#include "buffers.h"
#include "lifetime.h"
#include "real.h"

/* Captures begun and not ended. One that ends with its stream stays counted, which costs later
 * launches one question to the driver and nothing else. */
static atomic_int captures;

bool streams_any_capture(void)
{
    return atomic_load_explicit(&captures, memory_order_acquire) > 0;
}

bool stream_is_capturing(CUstream stream)
{
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!streams_any_capture())
        return false;
    /* The legacy stream answers with an error while a capture elsewhere forbids its use. */
    return REAL_OR_NOT_FOUND(cuStreamIsCapturing, stream, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

int capture_mode_relax(void)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (REAL_OR_NOT_FOUND(cuThreadExchangeStreamCaptureMode, &mode) != CUDA_SUCCESS)
        return -1;
    return mode;
}

void capture_mode_restore(int mode)
{
    if (mode >= 0)
        real()->cuThreadExchangeStreamCaptureMode(&mode);
}

void streams_reset(void)
{
    atomic_store(&captures, 0);
}

/* While the lock is held, nobody records an event of ours on a stream that is about to be captured. */
static CUresult counted(CUresult result)
{
    if (result != CUDA_SUCCESS)
        atomic_fetch_sub(&captures, 1);
    buffers_unlock();
    return result;
}

static void begin(CUstream stream)
{
    buffers_lock();
    buffers_mark_stream(stream);
    atomic_fetch_add(&captures, 1);
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
    if (hook_active() && over && atomic_fetch_sub(&captures, 1) <= 0)
        atomic_fetch_add(&captures, 1);
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
    return REAL_OR_NOT_FOUND(cuStreamDestroy, stream);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    buffers_leave_stream(stream);
    return REAL_OR_NOT_FOUND(cuStreamDestroy_v2, stream);
}

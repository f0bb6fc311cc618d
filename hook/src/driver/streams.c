#include "streams.h"

#include <stdatomic.h>

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

void streams_capture_begins(void)
{
    atomic_fetch_add(&captures, 1);
}

void streams_capture_failed(void)
{
    atomic_fetch_sub(&captures, 1);
}

void streams_capture_ended(void)
{
    if (atomic_fetch_sub(&captures, 1) <= 0)
        atomic_fetch_add(&captures, 1);
}

/* Events as programs make, record and compare them. */

#include "capture.h"
#include "current.h"
#include "events.h"
#include "machine.h"
#include "streams.h"
#include "work_kinds.h"

API cuEventCreate(CUevent *handle, unsigned flags)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!handle || flags > 7)
        return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(event_create(context, flags, handle));
}

static CUresult enter_event(CUevent handle, struct event **event)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    *event = event_of(handle);
    return *event ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_HANDLE);
}

/* EXTERNAL: in a capture it becomes a node, rather than a mark of where a stream is. */
static CUresult record(CUevent handle, CUstream stream, bool external)
{
    struct event *event;
    CUresult result = enter_event(handle, &event);
    if (result)
        return result;
    if (!stream_exists(stream))
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (capture_of(stream) && external) {
        struct work work = {.kind = &event_record_work, .of.event = handle};
        return leave(capture_work(stream, &work));
    }
    if (capture_of(stream))
        return leave(capture_point_set(&event->capture, stream_capture(stream)));
    capture_point_clear(&event->capture);
    event->cycles = driver.clock_cycles;
    event->recorded = true;
    return leave(CUDA_SUCCESS);
}

static CUresult run_record(const struct work *work)
{
    return record(work->of.event, NULL, false);
}

const struct work_kind event_record_work = {.type = NODE_EVENT_RECORD, .run = run_record};

API cuEventRecord(CUevent handle, CUstream stream)
{
    return record(handle, stream, false);
}
PER_THREAD_STREAM(cuEventRecord);

API cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags)
{
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : record(handle, stream, flags == 1);
}
PER_THREAD_STREAM(cuEventRecordWithFlags);

API cuEventSynchronize(CUevent handle)
{
    struct event *event;
    CUresult result = enter_event(handle, &event);
    if (result)
        return result;
    return leave(event->capture.capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS);
}
SAME_AS(cuEventQuery, cuEventSynchronize);

API cuEventElapsedTime_v2(float *milliseconds, CUevent start_handle, CUevent end_handle)
{
    struct event *start;
    CUresult result = enter_event(start_handle, &start);
    if (result)
        return result;
    const struct event *end = event_of(end_handle);
    bool timed = end && start->recorded && end->recorded && !((start->flags | end->flags) & EVENT_DISABLE_TIMING);
    if (!timed)
        return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!milliseconds)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *milliseconds = (float)(((double)end->cycles - (double)start->cycles) / CLOCK_KHZ);
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuEventElapsedTime, cuEventElapsedTime_v2);

API cuEventDestroy_v2(CUevent handle)
{
    struct event *event;
    CUresult result = enter_event(handle, &event);
    if (result)
        return result;
    event_destroy(event);
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuEventDestroy, cuEventDestroy_v2);

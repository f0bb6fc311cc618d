#include "event.h"

#include <stdlib.h>

#include "copy.h"
#include "machine.h"
#include "stream.h"

struct event {
    CUevent handle;
    struct context *owner;
    unsigned flags;
    bool recorded;
    uint64_t cycles;
    struct capture_point capture;
    struct event *next;
};

static struct event *events;

struct capture_point *event_capture(CUevent handle)
{
    struct event *event = handle_object(HANDLE_EVENT, handle);
    return event ? &event->capture : NULL;
}

void events_each_capture(bool (*visit)(struct capture_point *point, const void *argument), const void *argument)
{
    for (struct event *event = events; event; event = event->next)
        if (!visit(&event->capture, argument))
            return;
}

static void destroy(struct event *event)
{
    capture_point_clear(&event->capture);
    struct event **link = &events;
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    handle_destroy(event->handle);
    free(event);
}

void events_destroy_owner(const struct context *owner)
{
    for (struct event *event = events, *next; event; event = next) {
        next = event->next;
        if (event->owner == owner)
            destroy(event);
    }
}

API cuEventCreate(CUevent *handle, unsigned flags)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!handle || flags > 7)
        return leave(CUDA_ERROR_INVALID_VALUE);
    struct event *event = driver_has_room() ? calloc(1, sizeof *event) : NULL;
    if (!event)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    *event = (struct event){.owner = context, .flags = flags, .next = events};
    event->handle = handle_create(HANDLE_EVENT, event);
    if (!event->handle) {
        free(event);
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    events = event;
    *handle = event->handle;
    return leave(CUDA_SUCCESS);
}

static CUresult enter_event(CUevent handle, struct event **event)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    *event = handle_object(HANDLE_EVENT, handle);
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
        struct work work = {.type = NODE_EVENT_RECORD, .of.event = handle};
        return leave(capture_work(stream, &work));
    }
    if (capture_of(stream))
        return leave(capture_point_set(&event->capture, stream_capture(stream)));
    capture_point_clear(&event->capture);
    event->cycles = driver.clock_cycles;
    event->recorded = true;
    return leave(CUDA_SUCCESS);
}

CUresult event_record(CUevent handle)
{
    return record(handle, NULL, false);
}

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
    const struct event *end = handle_object(HANDLE_EVENT, end_handle);
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
    destroy(event);
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuEventDestroy, cuEventDestroy_v2);

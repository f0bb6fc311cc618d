#include "events.h"

#include <stdlib.h>

#include "capture_point.h"

static struct event *events;

struct event *event_of(CUevent handle)
{
    return handle_object(HANDLE_EVENT, handle);
}

struct capture_point *event_capture(CUevent handle)
{
    struct event *event = event_of(handle);
    return event ? &event->capture : NULL;
}

void events_each_capture(bool (*visit)(struct capture_point *point, const void *argument), const void *argument)
{
    for (struct event *event = events; event; event = event->next)
        if (!visit(&event->capture, argument))
            return;
}

void event_destroy(struct event *event)
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
            event_destroy(event);
    }
}

CUresult event_create(struct context *owner, unsigned flags, CUevent *handle)
{
    struct event *event = driver_has_room() ? calloc(1, sizeof *event) : NULL;
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *event = (struct event){.owner = owner, .flags = flags, .next = events};
    event->handle = handle_create(HANDLE_EVENT, event);
    if (!event->handle) {
        free(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    events = event;
    *handle = event->handle;
    return CUDA_SUCCESS;
}

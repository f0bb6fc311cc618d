/* Events: moments of simulated time. The caller holds the driver's lock. */
#ifndef TUI_PROBE_SIMGPU_EVENTS_H
#define TUI_PROBE_SIMGPU_EVENTS_H

#include "capture_point.h"
#include "driver.h"

struct event {
    CUevent handle;
    struct context *owner;
    unsigned flags;
    bool recorded;
    uint64_t cycles;
    struct capture_point capture;
    struct event *next;
};

CUresult event_create(struct context *owner, unsigned flags, CUevent *handle);
void event_destroy(struct event *event);
void events_destroy_owner(const struct context *owner);

/* NULL for no event. */
struct event *event_of(CUevent handle);

/* The position in a capture that an event marks; NULL for no event. */
struct capture_point *event_capture(CUevent handle);

/* Calls VISIT for every event, until one returns false. */
void events_each_capture(bool (*visit)(struct capture_point *point, const void *argument), const void *argument);

#endif

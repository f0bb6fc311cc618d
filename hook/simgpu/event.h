/* Events: moments of simulated time. */
#ifndef TUI_PROBE_SIMGPU_EVENT_H
#define TUI_PROBE_SIMGPU_EVENT_H

#include "capture.h"
#include "driver.h"

/* What an event marks of a capture; NULL for no event. */
struct capture_point *event_capture(CUevent handle);

/* Calls VISIT for every event, until one returns false. */
void events_each_capture(bool (*visit)(struct capture_point *point, const void *argument), const void *argument);

/* Destroys the events of a context. The caller holds the driver's lock. */
void events_destroy_owner(const struct context *owner);

#endif

/* Events: moments of simulated time. */
#ifndef TUI_PROBE_SIMGPU_EVENT_H
#define TUI_PROBE_SIMGPU_EVENT_H

#include "driver.h"

/* Destroys the events of a context. The caller holds the driver's lock. */
void events_destroy_owner(const struct context *owner);

#endif

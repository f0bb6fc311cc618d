/* Streams. Work runs in the order in which it is submitted, and has ended when the call that submitted it returns. */
#ifndef TUI_PROBE_SIMGPU_STREAM_H
#define TUI_PROBE_SIMGPU_STREAM_H

#include "driver.h"

/* Whether a handle names a live stream or one of the default streams. The caller holds the driver's lock. */
bool stream_exists(CUstream handle);

/* Destroys the streams and events of a context. The caller holds the driver's lock. */
void streams_destroy_owner(const struct context *owner);

#endif

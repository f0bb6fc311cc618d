/* Streams. Work runs in the order in which it is submitted, and has ended when the call that submitted it returns. */
#ifndef TUI_PROBE_SIMGPU_STREAM_H
#define TUI_PROBE_SIMGPU_STREAM_H

#include "capture.h"
#include "driver.h"

/* Whether a handle names a live stream or one of the default streams. The caller holds the driver's lock. */
bool stream_exists(CUstream handle);

/* What a stream has to do with a capture; NULL for a default stream and for none. */
struct capture_point *stream_capture(CUstream handle);

/* Calls VISIT for every stream, until one returns false; returns the last answer. */
bool streams_each_capture(bool (*visit)(struct capture_point *point, const void *argument), const void *argument);

/* Destroys the streams and events of a context. The caller holds the driver's lock. */
void streams_destroy_owner(const struct context *owner);

#endif

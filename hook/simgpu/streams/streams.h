/* Streams. Work runs in the order in which it is submitted, and has ended when the call that submitted it returns. The
 * caller holds the driver's lock. */
#ifndef TUI_PROBE_SIMGPU_STREAMS_H
#define TUI_PROBE_SIMGPU_STREAMS_H

#include "capture_point.h"
#include "driver.h"

struct stream {
    CUstream handle;
    struct context *owner;
    unsigned flags;
    int priority;
    uint64_t id;
    struct capture_point capture;
    struct stream *next;
};

CUresult stream_create(struct context *owner, unsigned flags, int priority, CUstream *handle);
void stream_destroy(struct stream *stream);
void streams_destroy_owner(const struct context *owner);

/* True if a handle names a live stream or one of the default streams. */
bool stream_exists(CUstream handle);
bool stream_is_default(CUstream handle);

/* NULL for a default stream and for none. */
struct stream *stream_of(CUstream handle);

/* The position of a stream in a capture; NULL for a default stream and for no stream. */
struct capture_point *stream_capture(CUstream handle);

/* Calls VISIT for every stream, until one returns false; returns the last answer. */
bool streams_each_capture(bool (*visit)(struct capture_point *point, const void *argument), const void *argument);

#endif

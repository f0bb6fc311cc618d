#include "streams.h"

#include <stdlib.h>

static struct stream *streams;

bool stream_is_default(CUstream handle)
{
    return handle == NULL || handle == STREAM_LEGACY || handle == STREAM_PER_THREAD;
}

struct stream *stream_of(CUstream handle)
{
    return handle_object(HANDLE_STREAM, handle);
}

bool stream_exists(CUstream handle)
{
    return stream_is_default(handle) || stream_of(handle);
}

struct capture_point *stream_capture(CUstream handle)
{
    struct stream *stream = stream_is_default(handle) ? NULL : stream_of(handle);
    return stream ? &stream->capture : NULL;
}

bool streams_each_capture(bool (*visit)(struct capture_point *point, const void *argument), const void *argument)
{
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (!visit(&stream->capture, argument))
            return false;
    return true;
}

void stream_destroy(struct stream *stream)
{
    capture_point_clear(&stream->capture);
    struct stream **link = &streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    handle_destroy(stream->handle);
    free(stream);
}

void streams_destroy_owner(const struct context *owner)
{
    for (struct stream *stream = streams, *next; stream; stream = next) {
        next = stream->next;
        if (stream->owner == owner)
            stream_destroy(stream);
    }
}

CUresult stream_create(struct context *owner, unsigned flags, int priority, CUstream *handle)
{
    static uint64_t last_id = 2; /* after the two default streams */
    struct stream *stream = driver_has_room() ? calloc(1, sizeof *stream) : NULL;
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *stream = (struct stream){.owner = owner, .flags = flags, .priority = priority, .id = ++last_id, .next = streams};
    stream->handle = handle_create(HANDLE_STREAM, stream);
    if (!stream->handle) {
        free(stream);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    streams = stream;
    *handle = stream->handle;
    return CUDA_SUCCESS;
}

#include "chunk.h"

#include <pthread.h>
#include <stdlib.h>

#include "drain_dropped.h"
#include "real.h"
#include "reasons.h"
#include "result.h"
#include "streams.h"

static bool reserve_pieces(struct chunk *chunk, size_t n)
{
    if (chunk->n_pieces + n <= chunk->pieces_capacity)
        return true;
    size_t capacity = chunk->pieces_capacity ? chunk->pieces_capacity * 2 : 256;
    struct piece *grown = realloc(chunk->pieces, capacity * sizeof *grown);
    if (!grown)
        return false;
    chunk->pieces = grown;
    chunk->pieces_capacity = capacity;
    return true;
}

/* Every launch under way may add a stream. Entries beyond n_uses keep their events for later. */
static bool reserve_use(struct chunk *chunk)
{
    if (chunk->n_uses + chunk->in_flight < chunk->uses_capacity)
        return true;
    size_t capacity = chunk->uses_capacity ? chunk->uses_capacity * 2 : 8;
    struct stream_use *grown = realloc(chunk->uses, capacity * sizeof *grown);
    if (!grown)
        return false;
    for (size_t i = chunk->uses_capacity; i < capacity; i++)
        grown[i].event = NULL;
    chunk->uses = grown;
    chunk->uses_capacity = capacity;
    return true;
}

bool chunk_reserve_pieces(struct chunk *chunk, size_t n)
{
    return reserve_pieces(chunk, n) && reserve_use(chunk);
}

static struct stream_use *find_use(struct chunk *chunk, CUstream stream, uintptr_t thread)
{
    for (size_t i = chunk->n_uses; i-- > 0;)
        if (chunk->uses[i].stream == stream && chunk->uses[i].thread == thread)
            return &chunk->uses[i];
    return NULL;
}

static struct stream_use *add_use(struct chunk *chunk, CUstream stream, uintptr_t thread)
{
    struct stream_use *use = &chunk->uses[chunk->n_uses++];
    use->stream = stream;
    use->thread = thread;
    return use;
}

static bool record_event(struct stream_use *use)
{
    if (!use->event && REAL_OR_NOT_FOUND(cuEventCreate, &use->event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC))
        use->event = NULL;
    return use->event && REAL_OR_NOT_FOUND(cuEventRecord, use->event, use->stream) == CUDA_SUCCESS;
}

/* Events and default streams are those of the current context, which here may be another one or none: that of
 * the draining thread, or of a thread that destroys a stream. */
static void record(const struct chunk *chunk, struct stream_use *use)
{
    CUcontext context = chunk->pool->context, before = NULL;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &before) != CUDA_SUCCESS)
        return; /* what is not known cannot be put back */
    if (before != context && REAL_OR_NOT_FOUND(cuCtxSetCurrent, context) != CUDA_SUCCESS)
        return;
    use->recorded = record_event(use);
    if (before != context)
        REAL_OR_NOT_FOUND(cuCtxSetCurrent, before);
}

void chunk_note_stream(struct chunk *chunk, CUstream stream)
{
    /* Another thread cannot name this thread's default stream: its event is recorded here and now. */
    uintptr_t thread = stream == CU_STREAM_PER_THREAD ? (uintptr_t)pthread_self() : 0;
    struct stream_use *use = find_use(chunk, stream, thread);
    if (!use)
        use = add_use(chunk, stream, thread);
    use->recorded = false;
    if (thread)
        record(chunk, use);
}

/* A launch without an event is waited for with all of its context, which would end a capture there. */
bool chunk_record_events(struct chunk *chunk)
{
    bool all = true;
    for (size_t i = 0; i < chunk->n_uses; i++) {
        struct stream_use *use = &chunk->uses[i];
        if (!use->recorded && !use->thread && !stream_is_capturing(use->stream))
            record(chunk, use);
        all = all && (use->recorded || !streams_any_capture());
    }
    return all;
}

void chunk_mark_stream(struct chunk *chunk, CUstream stream)
{
    struct stream_use *use = find_use(chunk, stream, 0);
    if (use && !use->recorded && !stream_is_capturing(stream))
        record(chunk, use);
}

void chunk_leave_stream(struct chunk *chunk, CUstream stream)
{
    struct stream_use *use = find_use(chunk, stream, 0);
    chunk_mark_stream(chunk, stream);
    if (use)
        use->thread = UINTPTR_MAX; /* the handle may soon stand for another stream */
}

CUresult chunk_wait(struct chunk *chunk)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < chunk->n_uses && result == CUDA_SUCCESS; i++) {
        struct stream_use *use = &chunk->uses[i];
        result =
            use->recorded ? REAL_OR_NOT_FOUND(cuEventSynchronize, use->event) : REAL_OR_NOT_FOUND(cuCtxSynchronize);
        if (result == CUDA_ERROR_CAPTURED_EVENT) /* the stream joined a capture in that moment */
            result = REAL_OR_NOT_FOUND(cuCtxSynchronize);
    }
    return result;
}

size_t chunk_results(const struct chunk *chunk)
{
    size_t n = 0;
    for (size_t i = 0; i < chunk->n_pieces; i++)
        n += !chunk->pieces[i].void_launch && !chunk->pieces[i].continues;
    return n;
}

void chunk_lose(const struct chunk *chunk, const struct reason *reason)
{
    for (size_t i = 0; i < chunk->n_pieces; i++)
        if (!chunk->pieces[i].void_launch)
            result_drop(&chunk->pieces[i]);
    drain_dropped(chunk_results(chunk), reason);
}

void chunk_drop(struct chunk **link)
{
    struct chunk *chunk = *link;
    *link = chunk->next;
    chunk_lose(chunk, reason(CONTEXT_DESTROYED));
    chunk_free(chunk);
}

void chunk_free(struct chunk *chunk)
{
    free(chunk->pieces);
    free(chunk->uses);
    free(chunk);
}

void chunk_destroy_events(struct chunk *chunk)
{
    for (size_t i = 0; i < chunk->uses_capacity; i++)
        if (chunk->uses[i].event)
            REAL_OR_NOT_FOUND(cuEventDestroy_v2, chunk->uses[i].event);
}

bool chunk_is_done(const struct chunk *chunk)
{
    if (REAL_OR_NOT_FOUND(cuCtxSetCurrent, chunk->pool->context) != CUDA_SUCCESS)
        return true; /* nothing is left to wait for */
    for (size_t i = 0; i < chunk->n_uses; i++)
        if (chunk->uses[i].recorded && REAL_OR_NOT_FOUND(cuEventQuery, chunk->uses[i].event) == CUDA_ERROR_NOT_READY)
            return false;
    return true;
}

bool chunk_had_kernel(const struct chunk *chunk, size_t piece)
{
    for (size_t i = 0; i < piece; i++)
        if (!chunk->pieces[i].void_launch && chunk->pieces[i].probe->kernel == chunk->pieces[piece].probe->kernel)
            return true;
    return false;
}

#include "drain_chunk.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "buffers.h"
#include "chunk.h"
#include "drain_dropped.h"
#include "event_log.h"
#include "graft_faults.h"
#include "liveness.h"
#include "outside.h"
#include "pool.h"
#include "real.h"
#include "reasons.h"
#include "result.h"
#include "simulated_fault.h"
#include "writer.h"

/* Larger chunks, of one launch with many records, are written as they are copied: host memory belongs to the program. */
enum { HOST_COPY_LIMIT = 64 << 20 };

static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER; /* held while memory of a context is read or written */

/* Records come back through a pinned window of the chunk. */
struct window {
    const struct chunk *chunk;
    size_t from, to;
    CUresult result;
};

static const void *read_window(void *argument, size_t offset, size_t size)
{
    struct window *window = argument;
    struct pool *pool = window->chunk->pool;
    if (window->chunk->host) {
        window->from = offset;
        window->to = window->chunk->used;
        return window->chunk->host + offset;
    }
    if (offset < window->from || offset + size > window->to) {
        size_t length = window->chunk->used - offset;
        if (length > pool->staging_size)
            length = pool->staging_size;
        if (!pool_staging(pool)) {
            window->result = CUDA_ERROR_OUT_OF_MEMORY;
            return NULL;
        }
        outside_begin();
        window->result = REAL_OR_NOT_FOUND(cuMemcpyDtoHAsync_v2, pool->staging, window->chunk->memory + offset, length,
                                           pool->stream);
        if (window->result == CUDA_SUCCESS)
            window->result = REAL_OR_NOT_FOUND(cuStreamSynchronize, pool->stream);
        outside_end();
        liveness_mark(LIVENESS_DRAIN, false);
        if (window->result != CUDA_SUCCESS)
            return NULL;
        window->from = offset;
        window->to = offset + length;
    }
    return pool->staging + (offset - window->from);
}

/* Writes the results while the chunk waits: for those that are too large to keep in host memory. */
static CUresult write_through(struct chunk *chunk)
{
    struct window window = {.chunk = chunk};
    struct result_source source = {.read = read_window, .argument = &window, .window = chunk->pool->staging_size};
    for (size_t i = 0; i < chunk->n_pieces; i++) {
        if (chunk->pieces[i].void_launch)
            continue;
        liveness_mark(LIVENESS_DRAIN, false);
        if (!result_write(&chunk->pieces[i], &source))
            drain_dropped(!chunk->pieces[i].continues,
                          window.result ? reason_of_driver(window.result) : result_stopped());
        if (window.result != CUDA_SUCCESS)
            return window.result;
    }
    return CUDA_SUCCESS;
}

static CUresult copy_chunk(struct chunk *chunk, uint8_t *bytes)
{
    struct window window = {.chunk = chunk};
    for (size_t at = 0; at < chunk->used; at = window.to) {
        const void *part = read_window(&window, at, 1);
        if (!part)
            return window.result;
        memcpy(bytes + at, part, window.to - window.from);
    }
    return CUDA_SUCCESS;
}

/* Gets the records off the device; files are written later, by another thread, if host memory allows. */
static CUresult save_results(struct chunk *chunk)
{
    uint8_t *bytes = chunk->used <= HOST_COPY_LIMIT ? writer_room(chunk->used) : NULL;
    if (!bytes)
        return write_through(chunk);
    CUresult result = copy_chunk(chunk, bytes);
    if (result == CUDA_SUCCESS && writer_submit(bytes, chunk->used, chunk->pieces, chunk->n_pieces)) {
        chunk->pieces = NULL; /* the writer's now */
        chunk->n_pieces = chunk->pieces_capacity = 0;
        return result;
    }
    writer_give_back(bytes, chunk->used);
    if (result != CUDA_SUCCESS)
        chunk_lose(chunk, reason_of_driver(result));
    return result == CUDA_SUCCESS ? write_through(chunk) : result;
}

/* The numbers of the kernels that were launched into the chunk, each once: "3,0", as many as fit, or "-". */
static void list_kernels(const struct chunk *chunk, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "-");
    for (size_t i = 0; i < chunk->n_pieces && used + 12 < size; i++)
        if (!chunk->pieces[i].void_launch && !chunk_had_kernel(chunk, i))
            used += (size_t)snprintf(text + used, size - used, "%s%u", used ? "," : "",
                                     chunk->pieces[i].probe->kernel->index);
}

/* Afterwards the context is of no use for probing: an error of the program's own kernels, as a rule. */
static void fault(struct chunk *chunk, CUresult result)
{
    char kernels[256], words[512];
    const char *name = reason_error_name(result);
    graft_faults_note(chunk, result);
    list_kernels(chunk, kernels, sizeof kernels);
    buffers_lock();
    chunk->pool->fault = reason_with(CONTEXT_FAULTED, name);
    buffers_return(chunk); /* to be freed with the others: none is taken any more */
    buffers_unlock();
    simulated_fault_words(words, sizeof words);
    event_log_summary("[exec] drain-failed %d %s kernels %s%s%s\n", result, name, kernels, words[0] ? " fault " : "",
                      words);
}

static CUresult clear(struct chunk *chunk)
{
    struct pool *pool = chunk->pool;
    if (chunk->host) {
        memset(chunk->host, 0, chunk->used);
        return CUDA_SUCCESS;
    }
    outside_begin();
    CUresult result = REAL_OR_NOT_FOUND(cuMemsetD8Async, chunk->memory, 0, chunk->used, pool->stream);
    if (result == CUDA_SUCCESS)
        result = REAL_OR_NOT_FOUND(cuStreamSynchronize, pool->stream);
    outside_end();
    return result;
}

static void give_back(struct chunk *chunk)
{
    buffers_lock();
    buffers_return(chunk);
    buffers_unlock();
}

static CUresult wait_for_launches(struct chunk *chunk)
{
    liveness_mark(LIVENESS_DRAIN, false);
    outside_begin();
    CUresult result = REAL_OR_NOT_FOUND(cuCtxSetCurrent, chunk->pool->context);
    if (result == CUDA_SUCCESS)
        result = chunk_wait(chunk);
    outside_end();
    return result;
}

static bool is_written(const struct chunk *chunk, size_t piece)
{
    const size_t end = piece + 1 < chunk->n_pieces ? chunk->pieces[piece + 1].offset : chunk->used;
    for (size_t at = chunk->pieces[piece].offset; at < end; at++)
        if (chunk->host[at])
            return true;
    return false;
}

/* The context has failed with RESULT. Of chunks in host memory, launches that wrote something are saved. */
static void save_rest(struct chunk *chunk, CUresult result)
{
    if (!chunk->host) {
        chunk_lose(chunk, reason_of_driver(result));
        return;
    }
    struct window window = {.chunk = chunk};
    const struct result_source source = {.read = read_window, .argument = &window, .window = SIZE_MAX};
    for (size_t i = 0; i < chunk->n_pieces; i++) {
        const struct piece *piece = &chunk->pieces[i];
        if (piece->void_launch)
            continue;
        if (!is_written(chunk, i)) {
            result_drop(piece);
            drain_dropped(!piece->continues, reason_of_driver(result));
        } else if (!result_write(piece, &source))
            drain_dropped(!piece->continues, result_stopped());
    }
}

static CUresult copy_and_clear(struct chunk *chunk)
{
    CUresult result = chunk_results(chunk) ? save_results(chunk) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? clear(chunk) : result;
}

void drain_chunk(struct chunk *chunk, bool given_up)
{
    if (given_up) {
        chunk_lose(chunk, result_stopped());
        give_back(chunk);
        return;
    }
    CUresult result = wait_for_launches(chunk);
    pthread_mutex_lock(&copying);
    const bool may_copy = buffers_may_copy(chunk);
    if (!may_copy)
        chunk_lose(chunk, reason(CONTEXT_DESTROYED));
    else if (result != CUDA_SUCCESS)
        save_rest(chunk, result);
    else
        result = copy_and_clear(chunk);
    pthread_mutex_unlock(&copying);
    if (may_copy && result != CUDA_SUCCESS)
        fault(chunk, result);
    else
        give_back(chunk);
}

static CUresult copy_resident(struct pool *pool, uint8_t *to)
{
    CUresult result = REAL_OR_NOT_FOUND(cuCtxSetCurrent, pool->context);
    const size_t most = pool_staging(pool) ? pool->staging_size : 0;
    for (size_t at = 0, part; at < pool->resident_size && result == CUDA_SUCCESS; at += part) {
        part = pool->resident_size - at < most ? pool->resident_size - at : most;
        if (!part)
            return CUDA_ERROR_OUT_OF_MEMORY;
        result = REAL_OR_NOT_FOUND(cuMemcpyDtoHAsync_v2, pool->staging, pool->resident + at, part, pool->stream);
        if (result == CUDA_SUCCESS)
            result = REAL_OR_NOT_FOUND(cuStreamSynchronize, pool->stream);
        if (result == CUDA_SUCCESS)
            memcpy(to + at, pool->staging, part);
    }
    if (result != CUDA_SUCCESS && simulated_deadlock() && simulated_memory(to, pool->resident, pool->resident_size))
        return CUDA_SUCCESS; /* the context is of no use, but the warps are still there */
    return result;
}

bool drain_read_resident(struct pool *pool, void *to)
{
    pthread_mutex_lock(&copying);
    buffers_lock();
    const bool may_copy = pool->context && !pool->leaving && pool->resident;
    buffers_unlock();
    outside_begin();
    const bool copied = may_copy && copy_resident(pool, to) == CUDA_SUCCESS;
    outside_end();
    pthread_mutex_unlock(&copying);
    return copied;
}

void drain_free_unused(void)
{
    pthread_mutex_lock(&copying);
    buffers_lock();
    struct chunk *unused = buffers_take_unused();
    buffers_unlock();
    pool_free(unused);
    pthread_mutex_unlock(&copying);
}

void drain_leave_memory(void)
{
    pthread_mutex_lock(&copying);
    pthread_mutex_unlock(&copying);
}

void drain_chunk_reset(void)
{
    pthread_mutex_init(&copying, NULL);
}

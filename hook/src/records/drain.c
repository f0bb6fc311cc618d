#include "drain.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buffers.h"
#include "chunk.h"
#include "clock.h"
#include "deadline.h"
#include "disk.h"
#include "drain_dropped.h"
#include "drain_wake.h"
#include "event_log.h"
#include "graft_faults.h"
#include "graph_probed_copy.h"
#include "liveness.h"
#include "outside.h"
#include "pool.h"
#include "real.h"
#include "reasons.h"
#include "result.h"
#include "signals.h"
#include "simulated_fault.h"
#include "streams.h"
#include "threads.h"
#include "timers.h"
#include "writer.h"

enum { TICK_MILLISECONDS = IDLE_MILLISECONDS, FLUSH_TICK_MICROSECONDS = 500, HOST_COPY_LIMIT = 64 << 20 };
enum { WAITING_TICK_MICROSECONDS = 1000 }; /* where no sealed chunk can be drained yet */
enum { LAUNCH_MILLISECONDS = 1000 }; /* that a flush at the end waits for launches that do not return */
enum { TIMES_MILLISECONDS = 500 }; /* that a flush waits for times alone: a sample may be lost, a record may not */

static atomic_uint flush_asked, flush_done;
static atomic_uint release_asked, release_done; /* unused memory is to be freed */
static atomic_uint hurried;                     /* threads of the program that wait for a context to be drained */
static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER; /* held while memory of a context is read or written */
static atomic_bool finishing, given_up, was_stuck;
static _Atomic(struct claim *) left_claim; /* of the launch whose thread ends the process in a handler; NULL: none */
static void (*say_last_words)(void);

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
            drain_dropped(1, window.result ? reason_of_driver(window.result) : result_stopped());
        if (window.result != CUDA_SUCCESS)
            return window.result;
    }
    return CUDA_SUCCESS;
}

static CUresult copy_chunk(struct chunk *chunk, uint8_t *bytes)
{
    struct window window = {.chunk = chunk};
    for (size_t at = 0; at < chunk->used; at += chunk->pool->staging_size) {
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

static bool was_before(const struct chunk *chunk, size_t piece)
{
    for (size_t i = 0; i < piece; i++)
        if (!chunk->pieces[i].void_launch && chunk->pieces[i].probe->kernel == chunk->pieces[piece].probe->kernel)
            return true;
    return false;
}

/* The numbers of the kernels that were launched into the chunk, each once: "3,0", as many as fit, or "-". */
static void list_kernels(const struct chunk *chunk, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "-");
    for (size_t i = 0; i < chunk->n_pieces && used + 12 < size; i++)
        if (!chunk->pieces[i].void_launch && !was_before(chunk, i))
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

static CUresult copy_and_clear(struct chunk *chunk)
{
    CUresult result = chunk_results(chunk) ? save_results(chunk) : CUDA_SUCCESS;
    return result == CUDA_SUCCESS ? clear(chunk) : result;
}

static void drain_chunk(struct chunk *chunk)
{
    if (atomic_load(&given_up)) { /* nobody waits for its launches any more */
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
        chunk_lose(chunk, reason_of_driver(result));
    else
        result = copy_and_clear(chunk);
    pthread_mutex_unlock(&copying);
    if (may_copy && result != CUDA_SUCCESS)
        fault(chunk, result);
    else
        give_back(chunk);
}

/* A flush is over when all chunks that were in use when it was asked for are drained. */
struct flush {
    unsigned asked, seen; /* tickets */
    uint64_t last_chunk;
    bool drained;
    uint64_t last_write;
    uint64_t times_until; /* when times are waited for no longer */
};

static void begin_flush(struct flush *flush)
{
    flush->asked = atomic_load(&flush_asked);
    if (flush->asked == flush->seen)
        return;
    flush->last_chunk = buffers_seal_all();
    buffers_leave_claim(atomic_exchange(&left_claim, NULL));
    flush->seen = flush->asked;
    flush->times_until = clock_now() + TIMES_MILLISECONDS * 1000000ull;
    flush->drained = false;
}

static bool is_flushed(struct flush *flush)
{
    if (!flush->drained && !buffers_sealed_until(flush->last_chunk)) {
        flush->drained = true;
        flush->last_write = writer_submitted();
    }
    if (!flush->drained || !writer_finished(flush->last_write))
        return false;
    return !timers_pending() || clock_now() >= flush->times_until;
}

static void end_flush(struct flush *flush)
{
    if (atomic_load(&flush_done) == flush->seen)
        return;
    if (atomic_exchange(&finishing, false))
        say_last_words();
    atomic_store(&flush_done, flush->seen);
}

static void release_unused(void)
{
    const unsigned asked = atomic_load(&release_asked);
    if (asked == atomic_load(&release_done))
        return;
    pthread_mutex_lock(&copying);
    buffers_lock();
    struct chunk *unused = buffers_take_unused();
    buffers_unlock();
    pool_free(unused);
    pthread_mutex_unlock(&copying);
    timers_free_memory();
    atomic_store(&release_done, asked);
}

/* In microseconds; 0: until woken. */
static unsigned time_to_rest(bool flushed, bool pending, bool waiting)
{
    if (!flushed || atomic_load(&hurried))
        return FLUSH_TICK_MICROSECONDS;
    const bool paused = result_paused();
    if (waiting)
        return WAITING_TICK_MICROSECONDS;
    if (pending)
        return TICK_MILLISECONDS * 1000;
    return paused ? DISK_MILLISECONDS * 1000 : 0;
}

/* Drains all that can be. Returns how long to sleep in microseconds, 0 for until woken. */
static unsigned drain_round(struct flush *flush)
{
    timers_collect();
    probed_copies_read_times();
    buffers_lock();
    begin_flush(flush);
    buffers_seal_waiting(clock_now());
    buffers_grow_ahead();
    for (struct chunk *chunk; (chunk = buffers_next_sealed());) {
        buffers_unlock();
        drain_chunk(chunk);
        buffers_lock();
        buffers_grow_ahead();
    }
    const bool waiting = buffers_any_sealed();
    bool flushed = is_flushed(flush);
    bool pending = buffers_pending() || timers_pending();
    if (!pending) {
        drain_rest(); /* with the lock held: the next launch sees it */
        pending = timers_pending();
    }
    buffers_unlock();
    release_unused();
    if (flushed)
        end_flush(flush);
    return time_to_rest(flushed, pending, waiting);
}

static void *drain(void *unused)
{
    (void)unused;
    struct flush flush = {0};
    capture_mode_relax();
    liveness_begin(LIVENESS_DRAIN);
    for (;;) {
        const unsigned rest = drain_round(&flush);
        liveness_mark(LIVENESS_DRAIN, true);
        drain_sleep(rest);
        liveness_mark(LIVENESS_DRAIN, false);
    }
    return NULL;
}

bool drain_start(void (*last_words)(void))
{
    say_last_words = last_words;
    drain_wake_start();
    if (!writer_start() || !thread_start(drain))
        drain_wake_stop();
    return drain_is_running();
}

static bool is_done(unsigned ticket)
{
    return (int)(atomic_load(&flush_done) - ticket) >= 0;
}

static void nap(void)
{
    const struct timespec time = {.tv_nsec = FLUSH_TICK_MICROSECONDS * 1000L / 5};
    nanosleep(&time, NULL);
}

/* STUCK says whether those that it waits for get on; NULL: they do. */
static bool flush_all(unsigned milliseconds, bool (*stuck)(struct liveness *seen))
{
    if (!drain_is_running())
        return true;
    const uint64_t began = clock_now();
    struct liveness seen = {.looked = began, .no_launch = began};
    const unsigned ticket = atomic_fetch_add(&flush_asked, 1) + 1;
    drain_wake();
    while (!is_done(ticket)) {
        if (deadline_passed(began, milliseconds) || (stuck && stuck(&seen)))
            return false;
        nap();
    }
    return true;
}

bool drain_flush(unsigned milliseconds)
{
    return flush_all(milliseconds, NULL);
}

static bool is_waited_for(CUcontext context, uint64_t began)
{
    return buffers_draining(context) || (timers_pending_in(context) && !deadline_passed(began, TIMES_MILLISECONDS));
}

bool drain_context(CUcontext context, unsigned milliseconds)
{
    const uint64_t began = clock_now();
    bool drained = true;
    if (!drain_is_running())
        return true;
    atomic_fetch_add(&hurried, 1);
    buffers_seal(context);
    drain_wake();
    while (drained && is_waited_for(context, began)) {
        nap();
        drained = !deadline_passed(began, milliseconds);
    }
    atomic_fetch_sub(&hurried, 1);
    return drained;
}

void drain_leave_memory(void)
{
    pthread_mutex_lock(&copying);
    pthread_mutex_unlock(&copying);
}

/* Waits until what can be freed is; false if time ran out. */
static bool release(uint64_t began, unsigned milliseconds)
{
    const unsigned ticket = atomic_fetch_add(&release_asked, 1) + 1;
    drain_wake();
    while ((int)(atomic_load(&release_done) - ticket) < 0) {
        if (deadline_passed(began, milliseconds))
            return false;
        nap();
    }
    return true;
}

void drain_give_back(bool used, unsigned milliseconds)
{
    const uint64_t began = clock_now();
    if (!drain_is_running())
        return;
    atomic_fetch_add(&hurried, 1);
    if (used)
        buffers_seal(NULL);
    drain_wake();
    while (used && buffers_draining(NULL) && !deadline_passed(began, milliseconds)) {
        nap();
        buffers_seal(NULL);
    }
    release(began, milliseconds);
    atomic_fetch_sub(&hurried, 1);
}

/* The threads of the program are stopped: one of them may have a lock that those wait for who save. */
static bool let_go_if_stuck(struct liveness *seen)
{
    if (liveness_waits_for_lock(seen))
        signals_let_go();
    return false;
}

bool drain_finish(unsigned milliseconds)
{
    atomic_store(&finishing, true);
    return flush_all(milliseconds, let_go_if_stuck);
}

/* A thread that launches may wait for what the interrupted one holds. Where that is not known, it has a little more
 * time. */
static bool is_stuck(struct liveness *seen)
{
    const bool held = signals_is_held();
    const uint64_t now = clock_now(), most = (held ? LIVENESS_MILLISECONDS : LAUNCH_MILLISECONDS) * 1000000ull;
    if (!buffers_wait_for_launches())
        seen->no_launch = now;
    const bool is = liveness_is_stuck(seen, held) || now - seen->no_launch >= most;
    if (is)
        atomic_store(&was_stuck, true);
    return is;
}

bool drain_flush_here(unsigned milliseconds)
{
    return flush_all(milliseconds, is_stuck);
}

bool drain_finish_here(unsigned milliseconds)
{
    atomic_store(&left_claim, buffers_own_claim());
    atomic_store(&finishing, true);
    return flush_all(milliseconds, is_stuck);
}

bool drain_was_stuck(void)
{
    return atomic_load(&was_stuck);
}

bool drain_give_up(unsigned milliseconds)
{
    const uint64_t deadline = clock_now() + milliseconds * 1000000ull;
    const unsigned ticket = atomic_load(&flush_asked);
    result_give_up();
    atomic_store(&given_up, true);
    drain_wake();
    while (!is_done(ticket)) {
        if (clock_now() > deadline)
            return false;
        nap();
    }
    return true;
}

bool drain_silence(void)
{
    return atomic_exchange(&finishing, false);
}

void drain_reset(void)
{
    drain_wake_stop();
    pthread_mutex_init(&copying, NULL);
    atomic_store(&hurried, 0);
    atomic_store(&release_asked, 0);
    atomic_store(&release_done, 0);
    atomic_store(&flush_asked, 0);
    atomic_store(&flush_done, 0);
    atomic_store(&finishing, false);
    atomic_store(&given_up, false);
    atomic_store(&was_stuck, false);
    atomic_store(&left_claim, NULL);
    liveness_reset();
    drain_dropped_reset();
    writer_reset();
}

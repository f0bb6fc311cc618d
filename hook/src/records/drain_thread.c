#include "drain_thread.h"

#include "buffers.h"
#include "chunk.h"
#include "clock.h"
#include "disk.h"
#include "drain_chunk.h"
#include "drain_wake.h"
#include "graph_probed_copy.h"
#include "liveness.h"
#include "result.h"
#include "sealed_chunks.h"
#include "streams.h"
#include "threads.h"
#include "timers.h"
#include "writer.h"

enum { TICK_MILLISECONDS = IDLE_MILLISECONDS, FLUSH_TICK_MICROSECONDS = 500 };
enum { WAITING_TICK_MICROSECONDS = 1000 }; /* where no sealed chunk can be drained yet */

struct drain_requests drain_requests;
static void (*write_final_lines)(void);

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
    flush->asked = atomic_load(&drain_requests.flush_asked);
    if (flush->asked == flush->seen)
        return;
    flush->last_chunk = buffers_seal_all();
    buffers_leave_claim(atomic_exchange(&drain_requests.left_claim, NULL));
    flush->seen = flush->asked;
    flush->times_until = clock_now() + TIMES_MILLISECONDS * 1000000ull;
    flush->drained = false;
}

static bool is_flushed(struct flush *flush)
{
    if (!flush->drained && !sealed_until(flush->last_chunk)) {
        flush->drained = true;
        flush->last_write = writer_submitted();
    }
    if (!flush->drained || !writer_finished(flush->last_write))
        return false;
    return !timers_pending() || clock_now() >= flush->times_until;
}

static void end_flush(struct flush *flush)
{
    if (atomic_load(&drain_requests.flush_done) == flush->seen)
        return;
    if (atomic_exchange(&drain_requests.finishing, false))
        write_final_lines();
    atomic_store(&drain_requests.flush_done, flush->seen);
}

static void release_unused(void)
{
    const unsigned asked = atomic_load(&drain_requests.release_asked);
    if (asked == atomic_load(&drain_requests.release_done))
        return;
    drain_free_unused();
    timers_free_memory();
    atomic_store(&drain_requests.release_done, asked);
}

/* In microseconds; 0: until woken. */
static unsigned time_to_rest(bool flushed, bool pending, bool waiting)
{
    if (!flushed || atomic_load(&drain_requests.hurried))
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
    for (struct chunk *chunk; (chunk = sealed_next());) {
        buffers_unlock();
        drain_chunk(chunk, atomic_load(&drain_requests.given_up));
        buffers_lock();
        buffers_grow_ahead();
    }
    const bool waiting = sealed_any();
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
        const unsigned pause_us = drain_round(&flush);
        liveness_mark(LIVENESS_DRAIN, true);
        drain_sleep(pause_us);
        liveness_mark(LIVENESS_DRAIN, false);
    }
    return NULL;
}

bool drain_thread_start(void (*final_lines_writer)(void))
{
    write_final_lines = final_lines_writer;
    return thread_start(drain);
}

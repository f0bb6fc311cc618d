#include "drain.h"

#include <stdatomic.h>
#include <time.h>

#include "buffers.h"
#include "clock.h"
#include "deadline.h"
#include "drain_chunk.h"
#include "drain_dropped.h"
#include "drain_thread.h"
#include "drain_wake.h"
#include "liveness.h"
#include "result.h"
#include "signals.h"
#include "timers.h"
#include "writer.h"

/* A flush polls, since a condition variable may be held by a thread that exit has stopped. */
enum { NAP_MICROSECONDS = 100 };
enum { LAUNCH_MILLISECONDS = 1000 }; /* that a flush at the end waits for launches that do not return */

static atomic_bool was_stuck;

bool drain_start(void (*write_final_lines)(void))
{
    drain_wake_start();
    if (!writer_start() || !drain_thread_start(write_final_lines))
        drain_wake_stop();
    return drain_is_running();
}

static bool is_done(unsigned ticket)
{
    return (int)(atomic_load(&drain_requests.flush_done) - ticket) >= 0;
}

static void nap(void)
{
    const struct timespec time = {.tv_nsec = NAP_MICROSECONDS * 1000L};
    nanosleep(&time, NULL);
}

/* STUCK says whether those that it waits for get on; NULL: they do. */
static bool flush_all(unsigned milliseconds, bool (*stuck)(struct liveness *seen))
{
    if (!drain_is_running())
        return true;
    const uint64_t began = clock_now();
    struct liveness seen = {.looked = began, .no_launch = began};
    const unsigned ticket = atomic_fetch_add(&drain_requests.flush_asked, 1) + 1;
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
    atomic_fetch_add(&drain_requests.hurried, 1);
    buffers_seal(context);
    drain_wake();
    while (drained && is_waited_for(context, began)) {
        nap();
        drained = !deadline_passed(began, milliseconds);
    }
    atomic_fetch_sub(&drain_requests.hurried, 1);
    return drained;
}

/* Waits until what can be freed is; false if time ran out. */
static bool release(uint64_t began, unsigned milliseconds)
{
    const unsigned ticket = atomic_fetch_add(&drain_requests.release_asked, 1) + 1;
    drain_wake();
    while ((int)(atomic_load(&drain_requests.release_done) - ticket) < 0) {
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
    atomic_fetch_add(&drain_requests.hurried, 1);
    if (used)
        buffers_seal(NULL);
    drain_wake();
    while (used && buffers_draining(NULL) && !deadline_passed(began, milliseconds)) {
        nap();
        buffers_seal(NULL);
    }
    release(began, milliseconds);
    atomic_fetch_sub(&drain_requests.hurried, 1);
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
    atomic_store(&drain_requests.finishing, true);
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
    atomic_store(&drain_requests.left_claim, buffers_own_claim());
    atomic_store(&drain_requests.finishing, true);
    return flush_all(milliseconds, is_stuck);
}

bool drain_was_stuck(void)
{
    return atomic_load(&was_stuck);
}

bool drain_give_up(unsigned milliseconds)
{
    const uint64_t deadline = clock_now() + milliseconds * 1000000ull;
    const unsigned ticket = atomic_load(&drain_requests.flush_asked);
    result_give_up();
    atomic_store(&drain_requests.given_up, true);
    drain_wake();
    while (!is_done(ticket)) {
        if (clock_now() > deadline)
            return false;
        nap();
    }
    return true;
}

bool drain_claim_final_lines(void)
{
    return atomic_exchange(&drain_requests.finishing, false);
}

void drain_reset(void)
{
    drain_wake_stop();
    drain_chunk_reset();
    atomic_store(&drain_requests.hurried, 0);
    atomic_store(&drain_requests.release_asked, 0);
    atomic_store(&drain_requests.release_done, 0);
    atomic_store(&drain_requests.flush_asked, 0);
    atomic_store(&drain_requests.flush_done, 0);
    atomic_store(&drain_requests.finishing, false);
    atomic_store(&drain_requests.given_up, false);
    atomic_store(&was_stuck, false);
    atomic_store(&drain_requests.left_claim, NULL);
    liveness_reset();
    drain_dropped_reset();
    writer_reset();
}

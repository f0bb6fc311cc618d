#define _GNU_SOURCE
#include "ending.h"

#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "benchmark.h"
#include "clock.h"
#include "deadline.h"
#include "drain.h"
#include "drain_dropped.h"
#include "event_log.h"
#include "graph_log.h"
#include "hook_state.h"
#include "kernel_folder.h"
#include "launch_counts.h"
#include "log_file.h"
#include "nvtx.h"
#include "prepare_log.h"
#include "reasons.h"
#include "result.h"
#include "sandbox.h"
#include "settings.h"
#include "signals.h"
#include "simulated_fault.h"
#include "unseen_drivers.h"
#include "watchdog.h"

/* Limits on waits of the thread that ends the process. They come after the time for the flush: the program may be held
 * by a hook thread that hangs in the driver or in the disk, and must end all the same. */
enum {
    GIVE_UP_MILLISECONDS = 200,              /* for the drain thread, which writes the final lines after giving up */
    FINAL_LINES_MILLISECONDS = 200,          /* for a hook thread that writes them instead */
    FINAL_LINES_AT_EXIT_MILLISECONDS = 1000, /* the same in an exit handler */
    OTHER_THREAD_MILLISECONDS = 2000,        /* for a thread that ends the process, too, and was first */
    STEP_MICROSECONDS = 1000
};

/* The thread that ends the trace. PROGRAM_THREAD may be in a signal handler, interrupted in a launch of its own.
 * SIGNAL_THREAD is the hook's, and has stopped all threads of the program. */
enum ending_thread { PROGRAM_THREAD, SIGNAL_THREAD };

/* The exit status that the process has given; less than 0 before it did. */
static atomic_int exit_status = -1;
static atomic_uint gave_up_after; /* milliseconds; 0: everything was drained in time */
static atomic_uint_fast64_t waited_since; /* a flush at exit has waited already, without success; 0: none has */
static atomic_bool in_exec; /* the call may fail: then the trace continues */
static atomic_bool interrupted; /* in a launch, or with a lock that others wait for: it never continues */
static pid_t owner;

void ending_reset(void)
{
    owner = getpid();
    atomic_store(&exit_status, -1);
    atomic_store(&gave_up_after, 0);
    atomic_store(&waited_since, 0);
    atomic_store(&in_exec, false);
    atomic_store(&interrupted, false);
}

bool ending_is_owner(void)
{
    return getpid() == owner;
}

void ending_set_status(int status)
{
    atomic_store(&exit_status, status & 0xff); /* the system keeps eight bits */
}

/* A hook thread that hangs, in the driver or in the disk, cannot count what it holds. */
static uint64_t unsaved_count(uint64_t dropped)
{
    uint64_t known = result_saved_count() + dropped, probed = launch_recorded_count();
    return dropped + (probed > known ? probed - known : 0);
}

/* Logs what is only complete at the end. Takes locks, which an interrupted thread may hold. */
static void log_totals(void)
{
    graph_log_end();
    prepare_log_unprepared();
    prepare_log_unlisted();
    kernel_folder_count_last();
    benchmark_end();
    nvtx_flush();
    simulated_findings_log(NULL, 0);
    event_log_dropped();
}

static void log_end_of_process(void)
{
    const int signal_number = signals_pending(), status = atomic_load(&exit_status);
    if (signal_number)
        event_log("[exit] signal %d\n", signal_number);
    else if (status >= 0)
        event_log("[exit] status %d\n", status);
}

void ending_write_final_lines(void)
{
    const struct reason *reason = NULL;
    if (!sandbox_is_deadly())
        unseen_drivers_report();
    if (!atomic_load(&gave_up_after) || !atomic_load(&interrupted))
        log_totals();
    uint64_t dropped = drain_dropped_count(&reason);
    const unsigned waited = atomic_load(&gave_up_after); /* read now: a thread may have given up since */
    if (waited)
        event_log("[exit] gave up waiting for kernels and results after %u ms\n", waited);
    if (waited || atomic_load(&interrupted)) {
        dropped = unsaved_count(dropped);
        reason = dropped ? reason(NO_TIME) : NULL;
    }
    log_end_of_process();
    event_log("[exit] launches %llu probed %llu dropped %llu reason %s\n", (unsigned long long)launch_run_count(),
              (unsigned long long)launch_probed_count(), (unsigned long long)dropped, reason ? reason->written : "-");
    if (!atomic_load(&in_exec))
        hook_state_off();
}

void ending_write_unclaimed_final_lines(void)
{
    if (drain_claim_final_lines())
        ending_write_final_lines();
}

/* Milliseconds for a flush: 0 after one at exit that did not succeed, since the program has waited once. */
static unsigned flush_timeout(void)
{
    return atomic_load(&waited_since) ? 0 : settings.exit_timeout * 1000;
}

/* The calling thread was interrupted in a launch, or with a lock that hook threads wait for. */
static void leave_interrupted(void)
{
    atomic_store(&interrupted, true);
    log_file_hurry();
}

/* Another thread writes the final lines. */
static void wait_for_final_lines(unsigned milliseconds)
{
    const uint64_t latest = clock_now() + milliseconds * 1000000ull;
    while (hook_active() && clock_now() < latest)
        usleep(STEP_MICROSECONDS);
}

static void give_up(uint64_t began)
{
    const unsigned waited = (unsigned)((clock_now() - began) / 1000000u);
    atomic_store(&gave_up_after, waited ? waited : 1);
}

/* A second thread that ends the process waits for the flush of the first. */
static bool wait_for_other_thread(void)
{
    const uint64_t began = clock_now();
    if (!hook_state_is_ending())
        return true;
    wait_for_final_lines(OTHER_THREAD_MILLISECONDS);
    if (!hook_state_is_ending())
        return true;
    give_up(began);
    return false;
}

static bool finish_interrupted(void)
{
    if (signals_is_held())
        leave_interrupted();
    if (drain_finish_here(flush_timeout()))
        return true;
    if (drain_was_stuck())
        leave_interrupted();
    return false;
}

/* Ends the trace, once; later launches run unseen. False if a hook thread hangs and has not written the final lines.
 * Takes no lock and allocates nothing, for it may run in a signal handler. */
static bool end_trace(enum ending_thread thread)
{
    if (!ending_is_owner())
        return true;
    const bool taken_over = thread == SIGNAL_THREAD && hook_state_is_ending(); /* from a thread that a signal stopped */
    if (!hook_state_end() && !taken_over) {
        if (!hook_state_is_ending())
            unseen_drivers_report();
        return wait_for_other_thread();
    }
    const uint64_t began = clock_now(), before = atomic_load(&waited_since);
    watchdog_end();
    if (thread == PROGRAM_THREAD ? finish_interrupted() : drain_finish(flush_timeout()))
        return true;
    give_up(before ? before : began);
    return drain_give_up(GIVE_UP_MILLISECONDS);
}

/* For calls that may be in a signal handler, where the final lines cannot be written: that takes locks. */
static void end_in_any_context(unsigned milliseconds)
{
    if (end_trace(PROGRAM_THREAD))
        return;
    signals_request_final_lines();
    wait_for_final_lines(milliseconds);
}

/* If a signal ends the process, the status is the signal's, and the thread of signals is saving the records. */
static void leave_end_to_signal(void)
{
    if (signals_pending())
        signals_wait_for_end();
}

void ending_at_exit(void)
{
    leave_end_to_signal();
    end_in_any_context(FINAL_LINES_AT_EXIT_MILLISECONDS);
}

void ending_save_at_exit(void)
{
    if (!ending_is_owner())
        return;
    leave_end_to_signal();
    const uint64_t began = clock_now();
    if (hook_is_on() && !signals_is_held()) {
        watchdog_end();
        if (drain_flush_here(flush_timeout()))
            return;
    }
    atomic_store(&waited_since, began);
    ending_at_exit();
}

void ending_immediately(int status)
{
    if (!ending_is_owner())
        return;
    ending_set_status(status);
    leave_end_to_signal();
    end_in_any_context(FINAL_LINES_MILLISECONDS);
}

void ending_at_signal(void)
{
    deadline_shorten();
    if (!end_trace(SIGNAL_THREAD)) {
        signals_let_go(); /* the stopped threads may have the locks that the final lines take */
        ending_write_unclaimed_final_lines();
    }
}

void ending_before_exec(void)
{
    if (!ending_is_owner() || !hook_is_on())
        return;
    atomic_store(&in_exec, true);
    end_in_any_context(FINAL_LINES_MILLISECONDS);
}

void ending_after_failed_exec(void)
{
    if (ending_is_owner() && atomic_exchange(&in_exec, false))
        hook_state_resume();
}

#define _GNU_SOURCE
#include "lifetime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ahead.h"
#include "allocations.h"
#include "background.h"
#include "benchmark.h"
#include "buffers.h"
#include "capacities.h"
#include "clock.h"
#include "context_holds.h"
#include "control.h"
#include "deadline.h"
#include "drain.h"
#include "drain_dropped.h"
#include "engine_client.h"
#include "errand.h"
#include "event_log.h"
#include "exec_calls.h"
#include "executable.h"
#include "graph_captured.h"
#include "graph_log.h"
#include "graph_probed_copy.h"
#include "hook_state.h"
#include "host_memory.h"
#include "kept_launch.h"
#include "kernel_folder.h"
#include "kernels.h"
#include "last_thread.h"
#include "launch_counts.h"
#include "launch_log.h"
#include "legacy_launch.h"
#include "loader.h"
#include "log_file.h"
#include "memusage.h"
#include "nvtx.h"
#include "own_file.h"
#include "packed_log.h"
#include "prepare.h"
#include "prepare_log.h"
#include "raw_calls.h"
#include "reasons.h"
#include "references.h"
#include "registry.h"
#include "replayed_probes.h"
#include "reservations.h"
#include "result.h"
#include "run_notes.h"
#include "sandbox.h"
#include "schedule.h"
#include "settings.h"
#include "signal_calls.h"
#include "signals.h"
#include "simulated_fault.h"
#include "streams.h"
#include "system_call.h"
#include "threads.h"
#include "timing.h"
#include "trace_dir.h"
#include "unloading.h"
#include "unseen_drivers.h"
#include "watchdog.h"
#include "watched_launches.h"

/* Limits on waits of the thread that ends the process. They come after the time for the flush: the program may be held
 * by a hook thread that hangs in the driver or in the disk, and must end all the same. */
enum {
    GIVE_UP_MILLISECONDS = 200,              /* for the drain thread, which writes the final lines after giving up */
    FINAL_LINES_MILLISECONDS = 200,          /* for a hook thread that writes them instead */
    FINAL_LINES_AT_EXIT_MILLISECONDS = 1000, /* the same in an exit handler */
    OTHER_THREAD_MILLISECONDS = 2000,        /* for a thread that ends the process, too, and was first */
    STEP_MICROSECONDS = 1000
};

/* The exit status that the process has given; less than 0 before it did. */
static atomic_int exit_status = -1;
static atomic_uint gave_up_after; /* milliseconds; 0: everything was drained in time */
static atomic_uint_fast64_t waited_since; /* a flush at exit has waited already, without success; 0: none has */
static atomic_bool in_exec; /* the call may fail: then the trace continues */
static atomic_bool interrupted; /* in a launch, or with a lock that others wait for: it never continues */
static pid_t owner;

/* Milliseconds for a flush: 0 after one at exit that did not succeed, since the program has waited once. */
static unsigned flush_timeout(void)
{
    return atomic_load(&waited_since) ? 0 : settings.exit_timeout * 1000;
}

void hook_flush(void)
{
    if (hook_is_on() && !drain_flush(flush_timeout()))
        event_log("[exec] gave up waiting for records after %u ms\n", flush_timeout());
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

/* The lines at the end of event.log, from which readers know that it is complete. */
static void write_final_lines(void)
{
    const struct reason *reason = NULL;
    if (!sandbox_is_deadly())
        unseen_drivers_report();
    if (!atomic_load(&gave_up_after) || !atomic_load(&interrupted))
        log_totals();
    uint64_t dropped = drain_dropped_count(&reason);
    if (atomic_load(&gave_up_after))
        event_log("[exit] gave up waiting for kernels and results after %u ms\n", atomic_load(&gave_up_after));
    if (atomic_load(&gave_up_after) || atomic_load(&interrupted)) {
        dropped = unsaved_count(dropped);
        reason = dropped ? reason(NO_TIME) : NULL;
    }
    int signal_number = signals_pending();
    if (signal_number)
        event_log("[exit] signal %d\n", signal_number);
    else if (atomic_load(&exit_status) >= 0)
        event_log("[exit] status %d\n", atomic_load(&exit_status));
    event_log("[exit] launches %llu probed %llu dropped %llu reason %s\n", (unsigned long long)launch_run_count(),
              (unsigned long long)launch_probed_count(), (unsigned long long)dropped, reason ? reason->written : "-");
    if (!atomic_load(&in_exec))
        hook_state_off();
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

static bool finish(bool here)
{
    if (!here)
        return drain_finish(flush_timeout());
    if (signals_is_held())
        leave_interrupted();
    if (drain_finish_here(flush_timeout()))
        return true;
    if (drain_was_stuck())
        leave_interrupted();
    return false;
}

/* Ends the trace, once; later launches run unseen. False if a hook thread hangs and has not written the final lines.
 * HERE: the thread that ends the process is the calling one. Takes no lock and allocates nothing, for it may run in a
 * signal handler. */
static bool end_trace(bool here)
{
    if (getpid() != owner)
        return true;
    const bool taken_over = !here && hook_state_is_ending(); /* from a thread that a signal has stopped */
    if (!hook_state_end() && !taken_over) {
        if (!hook_state_is_ending())
            unseen_drivers_report();
        return wait_for_other_thread();
    }
    const uint64_t began = clock_now(), before = atomic_load(&waited_since);
    watchdog_end();
    if (finish(here))
        return true;
    give_up(before ? before : began);
    return drain_give_up(GIVE_UP_MILLISECONDS);
}

static void write_unclaimed_final_lines(void)
{
    if (drain_claim_final_lines())
        write_final_lines();
}

/* For calls that may be in a signal handler, where the final lines cannot be written: that takes locks. */
static void end_in_any_context(unsigned milliseconds)
{
    if (end_trace(true))
        return;
    signals_request_final_lines();
    wait_for_final_lines(milliseconds);
}

static void end_at_exit(void)
{
    if (signals_pending())
        signals_wait_for_end(); /* the status is the signal's, and the records are being saved */
    end_in_any_context(FINAL_LINES_AT_EXIT_MILLISECONDS);
}

/* Saves the launches so far before the runtime libraries take their contexts down. The trace continues: handlers
 * that were registered before, and destructors, may launch, too. */
static void save_at_exit(void)
{
    if (getpid() != owner)
        return;
    if (signals_pending())
        signals_wait_for_end(); /* the status is the signal's, and the records are being saved */
    const uint64_t began = clock_now();
    if (hook_is_on() && !signals_is_held()) {
        watchdog_end();
        if (drain_flush_here(flush_timeout()))
            return;
    }
    atomic_store(&waited_since, began);
    end_at_exit();
}

#ifdef __GLIBC__
static void save_with_status(int status, void *unused)
{
    (void)unused;
    atomic_store(&exit_status, status & 0xff);
    save_at_exit();
}
#endif

static void end_at_signal(void)
{
    deadline_shorten();
    if (!end_trace(false)) {
        signals_let_go(); /* the stopped threads may have the locks that the final lines take */
        write_unclaimed_final_lines();
    }
}

static bool start(void)
{
    if (!trace_dir_create() || !launch_log_start())
        return false;
    result_start();
    if (!drain_start(write_final_lines))
        return false;
    /* Registered this late, it runs before the runtime libraries take their contexts down. */
#ifdef __GLIBC__
    on_exit(save_with_status, NULL);
#else
    atexit(save_at_exit);
#endif
    signals_watch(end_at_signal, write_unclaimed_final_lines);
    last_thread_begin();
    return true;
}

static void start_if_allowed(void *started)
{
    if (sandbox_is_deadly())
        run_note("no-trace", "the program's seccomp filter kills the program at system calls that a trace needs");
    else
        *(bool *)started = start();
}

static bool begin(void)
{
    bool started = false;
    errand_run(start_if_allowed, &started);
    return started;
}

/* A child starts clean: what its parent did is in the parent's trace. After the parent's first launch
 * the driver does not work in a child, and there is nothing to trace. */
static void begin_in_child(void)
{
    owner = getpid();
    settings.stamp = NULL;
    atomic_store(&exit_status, -1);
    atomic_store(&waited_since, 0);
    atomic_store(&in_exec, false);
    log_file_reset();
    event_log_reset();
    launch_log_reset();
    packed_log_reset();
    schedule_reset();
    registry_reset();
    kernels_reset();
    unloading_reset();
    prepare_reset();
    ahead_reset();
    budget_reset();
    control_reset();
    host_memory_reset();
    background_reset();
    buffers_reset();
    context_holds_reset();
    allocations_reset();
    benchmark_reset();
    replayed_probes_reset();
    kept_launch_reset();
    memusage_reset();
    capacities_reset();
    drain_reset();
    legacy_launch_reset();
    streams_reset();
    timing_reset();
    executables_reset();
    probed_copies_reset();
    graph_captured_reset();
    engine_reset();
    errand_reset();
    trace_dir_reset();
    own_file_reset();
    threads_reset();
    launch_counts_reset();
    nvtx_reset();
    deadline_reset();
    unseen_drivers_reset();
    watched_launches_reset();
    watchdog_reset();
    clock_start();
    hook_state_reset();
}

/* The function that the program would call without us: a sanitizer's may choose the status. NULL: it calls ours. */
static void (*next_exit)(int);
static atomic_flag next_exit_called = ATOMIC_FLAG_INIT; /* it may call _exit, which is ours, again */

static void leave_for_exec(void)
{
    if (getpid() != owner || !hook_is_on())
        return;
    atomic_store(&in_exec, true);
    end_in_any_context(FINAL_LINES_MILLISECONDS);
}

/* exec has failed: the trace continues. */
static void continue_after_exec(void)
{
    if (getpid() == owner && atomic_exchange(&in_exec, false))
        hook_state_resume();
}

/* Processes also end without running exit handlers: workers of multiprocessing pools, for one. In a
 * child that shares memory with its parent (vfork), only the child's own id tells. */
static void end_now(int status)
{
    if (getpid() != owner)
        return;
    atomic_store(&exit_status, status & 0xff);
    if (signals_pending())
        signals_wait_for_end();
    end_in_any_context(FINAL_LINES_MILLISECONDS);
}

/* The process ends with its last thread, and ours would outlive that. */
static void end_thread(int status)
{
    if (getpid() == owner)
        last_thread_leaves(status, hook_is_on());
}

/* Puts our functions before those that end the process or replace its program. */
static void intercept_ends(void)
{
    struct reference ends[4 + SIGNAL_FUNCTIONS + EXEC_FUNCTIONS] = {
        {"_exit", (void *)(uintptr_t)_exit},
        {"_Exit", (void *)(uintptr_t)_Exit},
        {"quick_exit", (void *)(uintptr_t)quick_exit},
    };
    raw_calls_watch(&(struct raw_call_ends){end_now, end_thread, leave_for_exec, continue_after_exec}, ends + 3);
    signal_calls_list(ends + 4);
    exec_calls_watch(leave_for_exec, continue_after_exec, ends + 4 + SIGNAL_FUNCTIONS);
    void *program =
        loader_open(NULL, RTLD_LAZY); /* RTLD_DEFAULT begins with this library, which is linked symbolically */
    void *program_exit = program ? dlsym(program, "_exit") : NULL;
    if (!program_exit || program_exit == ends[0].ours)
        return;
    next_exit = (void (*)(int))(uintptr_t)program_exit;
    references_redirect(ends, sizeof ends / sizeof *ends);
}

__attribute__((constructor)) static void loaded(void)
{
    owner = getpid();
    clock_start();
    settings_read();
    if (!settings.trace_root)
        return;
    pthread_atfork(NULL, NULL, begin_in_child);
    last_thread_watch(_exit);
    intercept_ends();
    run_notes_open();
    const bool as_asked = control_start();
    if (settings.capture_range)
        control_gate(CONTROL_CAPTURE_RANGE, false);
    hook_state_wait(begin, begin_in_child);
    at_quick_exit(end_at_exit); /* as the first, so that it comes after those of the program */
    if (!as_asked)
        event_log(
            "[budget] %s cannot be used: budgets apply to this process only, and tui-probe ctl has no effect on it\n",
            settings.control);
}

__attribute__((destructor)) static void unloaded(void)
{
    end_at_exit();
}

__attribute__((visibility("default"), noreturn)) void _exit(int status)
{
    end_now(status);
    if (next_exit && getpid() == owner && !atomic_flag_test_and_set(&next_exit_called))
        next_exit(status);
    for (;;)
        system_call(SYS_exit_group, status, 0, 0);
}

__attribute__((visibility("default"), noreturn)) void _Exit(int status)
{
    _exit(status);
}

__attribute__((visibility("default"), noreturn)) void quick_exit(int status)
{
    void (*real_quick_exit)(int) =
        (void (*)(int))(uintptr_t)references_next("quick_exit", (void *)(uintptr_t)quick_exit);
    atomic_store(&exit_status, status & 0xff);
    if (real_quick_exit)
        real_quick_exit(status); /* whose handlers may launch; end_at_exit is the last of them */
    _exit(status);
}

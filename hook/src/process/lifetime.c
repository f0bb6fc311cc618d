/* Begin and end of the hook in a process: its constructor and destructor, the first launch, and the functions by which
 * the program ends or replaces itself. This file is entered by the system and by the program only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "control.h"
#include "drain.h"
#include "ending.h"
#include "errand.h"
#include "event_log.h"
#include "exec_calls.h"
#include "hook_state.h"
#include "last_thread.h"
#include "launch_log.h"
#include "loader.h"
#include "raw_calls.h"
#include "references.h"
#include "result.h"
#include "run_notes.h"
#include "sandbox.h"
#include "settings.h"
#include "signal_calls.h"
#include "signals.h"
#include "system_call.h"
#include "trace_dir.h"

#ifdef __GLIBC__
static void save_with_status(int status, void *unused)
{
    (void)unused;
    ending_set_status(status);
    ending_save_at_exit();
}
#endif

static bool start(void)
{
    if (!trace_dir_create() || !launch_log_start())
        return false;
    result_start();
    if (!drain_start(ending_write_final_lines))
        return false;
    /* Registered this late, it runs before the runtime libraries take their contexts down. */
#ifdef __GLIBC__
    on_exit(save_with_status, NULL);
#else
    atexit(ending_save_at_exit);
#endif
    signals_watch(ending_at_signal, ending_write_unclaimed_final_lines);
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

/* The function that the program would call without us: a sanitizer's may choose the status. NULL: it calls ours. */
static void (*next_exit)(int);
static atomic_flag next_exit_called = ATOMIC_FLAG_INIT; /* it may call _exit, which is ours, again */

/* The process ends with its last thread, and ours would outlive that. */
static void end_thread(int status)
{
    if (ending_is_owner())
        last_thread_leaves(status, hook_is_on());
}

/* Places in the list of functions that end the process or replace its program. */
enum {
    EXIT_FUNCTIONS = 3,
    RAW_CALL = EXIT_FUNCTIONS,
    SIGNAL_CALLS = RAW_CALL + 1,
    EXEC_CALLS = SIGNAL_CALLS + SIGNAL_FUNCTIONS,
    N_ENDS = EXEC_CALLS + EXEC_FUNCTIONS
};

/* Puts our functions before those that end the process or replace its program. */
static void intercept_ends(void)
{
    struct reference ends[N_ENDS] = {
        {"_exit", (void *)(uintptr_t)_exit},
        {"_Exit", (void *)(uintptr_t)_Exit},
        {"quick_exit", (void *)(uintptr_t)quick_exit},
    };
    raw_calls_watch(&(struct raw_call_ends){.end = ending_immediately,
                                            .end_thread = end_thread,
                                            .leave = ending_before_exec,
                                            .stay = ending_after_failed_exec},
                    &ends[RAW_CALL]);
    signal_calls_list(&ends[SIGNAL_CALLS]);
    exec_calls_watch(ending_before_exec, ending_after_failed_exec, &ends[EXEC_CALLS]);
    /* Not RTLD_DEFAULT: that begins with this library, which is linked symbolically. */
    void *program = loader_open(NULL, RTLD_LAZY);
    void *program_exit = program ? dlsym(program, "_exit") : NULL;
    if (!program_exit || program_exit == ends[0].ours)
        return;
    next_exit = (void (*)(int))(uintptr_t)program_exit;
    references_redirect(ends, sizeof ends / sizeof *ends);
}

__attribute__((constructor)) static void loaded(void)
{
    ending_reset();
    clock_start();
    settings_read();
    if (!settings.trace_root)
        return;
    pthread_atfork(NULL, NULL, child_begin);
    last_thread_watch(_exit);
    intercept_ends();
    run_notes_open();
    const bool as_asked = control_start();
    if (settings.capture_range)
        control_gate(CONTROL_CAPTURE_RANGE, false);
    hook_state_wait(begin, child_begin);
    at_quick_exit(ending_at_exit); /* as the first, so that it comes after those of the program */
    if (!as_asked)
        event_log(
            "[budget] %s cannot be used: budgets apply to this process only, and tui-probe ctl has no effect on it\n",
            settings.control);
}

__attribute__((destructor)) static void unloaded(void)
{
    ending_at_exit();
}

__attribute__((visibility("default"), noreturn)) void _exit(int status)
{
    ending_immediately(status);
    if (next_exit && ending_is_owner() && !atomic_flag_test_and_set(&next_exit_called))
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
    ending_set_status(status);
    if (real_quick_exit)
        real_quick_exit(status); /* whose handlers may launch; ending_at_exit is the last of them */
    _exit(status);
}

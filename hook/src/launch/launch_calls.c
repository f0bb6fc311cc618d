/* Wrappers of the functions that launch kernels. */
#include <stdatomic.h>

#include "background.h"
#include "benchmark.h"
#include "clock.h"
#include "gate.h"
#include "graph_captured.h"
#include "hook_state.h"
#include "kept_launch.h"
#include "kernels.h"
#include "launch.h"
#include "launch_counts.h"
#include "launch_intercept.h"
#include "launch_log.h"
#include "memory_hash.h"
#include "memusage.h"
#include "nvtx.h"
#include "prepare.h"
#include "probed_launch.h"
#include "real.h"
#include "registry.h"
#include "replayed_probes.h"
#include "schedule.h"
#include "settings.h"
#include "signals.h"
#include "simulated_fault.h"
#include "streams.h"
#include "timing.h"
#include "watchdog.h"
#include "watched_launches.h"

/* Launches the original for REASON, or the probed kernel without one; timed, if it is its turn. */
static CUresult launch_timed(struct launch *launch, struct kernel *kernel, const struct reason *reason)
{
    struct timed_launch timed;
    launch->timer = timing_begin(launch, !reason && settings_selects_launch(launch->nth), &timed);
    const size_t place = watchdog_times(launch);
    CUresult result = reason ? launch_pass(launch, reason) : launch_probed(launch, kernel);
    unwatched_launch_ends(place);
    timer_give(launch->timer, &timed);
    return result;
}

/* A new kernel is numbered by its first launch, and prepared by the first that may be probed. */
static const struct reason *not_yet(const struct launch *launch, struct kernel *kernel, const struct reason *closed_by)
{
    if (!atomic_load_explicit(&kernel->unprepared, memory_order_relaxed))
        kernels_number(kernel);
    const struct reason *reason = closed_by ? closed_by : prepare_refused(kernel, launch);
    if (reason)
        atomic_store_explicit(&kernel->unprepared, reason, memory_order_relaxed);
    return reason;
}

/* The schedule, if there is one, decides here for nearly all launches; the rest see when they are about to be probed
 * whether the turn is theirs. One that the log has no room for leaves it to the next. */
static bool is_left_out(const struct launch *launch)
{
    return settings.scheduled && (!schedule_near(launch->group, launch->nth_of_group) || launch_log_is_full());
}

/* It does not run: it becomes a node of a graph, which the log names by the number. The schedule does not count it. */
static CUresult capture(struct launch *launch, struct kernel *kernel)
{
    /* A thread that finds the mark takes the kernel for numbered, and has the log write its number. */
    if (!atomic_load_explicit(&kernel->unprepared, memory_order_acquire)) {
        kernels_number(kernel);
        atomic_store_explicit(&kernel->unprepared, reason(CAPTURING), memory_order_release);
    }
    launch->time = clock_now();
    launch->number = launch_count_next();
    launch_count_captured();
    nvtx_launched(launch->number, 1);
    return launch_pass(launch, reason(CAPTURING));
}

enum { NOT_KEPT = -1 };

/* The kernel's variables are known once it is prepared. The result of a launch that was saved, and is done; else NOT_KEPT.
 * Not inlined: other launches need no stack for it. */
__attribute__((noinline)) static int keep(struct launch *launch, struct kernel *kernel, const struct reason *refused)
{
    CUresult result;
    if (!refused && atomic_load_explicit(&kernel->status, memory_order_acquire) == KERNEL_NEW)
        prepare_kernel(kernel, launch);
    return kept_launch(launch, kernel, &result) ? (int)result : NOT_KEPT;
}

static CUresult follow(struct launch *launch)
{
    if (!launch->function || !hook_launching() || !(launch->instance = registry_instance(launch->function)))
        return launch_enqueue(launch, launch->function, NULL);
    struct kernel *kernel = atomic_load_explicit(&launch->instance->kernel, memory_order_relaxed);
    if (!(launch->group = schedule_group(kernel, launch)))
        return launch_enqueue(launch, launch->function, NULL);
    if (stream_is_capturing(launch_stream(launch)))
        return capture(launch, kernel);
    if (settings.replays)
        replayed_probes_note_thread();
    launch->time = clock_now();
    launch->number = launch_count_next();
    nvtx_launched(launch->number, 1);
    launch->nth_of_group = schedule_count(launch->group);
    if (settings.n_launches)
        launch->nth = atomic_fetch_add_explicit(&kernel->launches, 1, memory_order_relaxed);
    enum kernel_status status = atomic_load_explicit(&kernel->status, memory_order_acquire);
    const struct reason *closed_by = gate_closed();
    const struct reason *reason = status == KERNEL_NEW ? not_yet(launch, kernel, closed_by) : closed_by;
    const int kept_result =
        settings.n_kept && kept_launch_take(launch, kernel) ? keep(launch, kernel, reason) : NOT_KEPT;
    if (kept_result != NOT_KEPT)
        return (CUresult)kept_result;
    if (reason)
        return closed_by ? launch_pass(launch, reason) : launch_timed(launch, kernel, reason);
    if (status == KERNEL_NEW) {
        if (background_takes(kernel, launch)) {
            atomic_store_explicit(&kernel->unprepared, reason(BEING_PREPARED), memory_order_relaxed);
            launch->time = clock_now();
            return launch_timed(launch, kernel, reason(BEING_PREPARED));
        }
        status = prepare_kernel(kernel, launch);
        background_waited(clock_now() - launch->time);
        launch->time = clock_now();
    }
    if (settings.memusage)
        return memusage_launch(launch, kernel);
    if (settings.benchmark)
        return benchmark_launch(launch, kernel);
    if (status == KERNEL_PASSED)
        return launch_timed(launch, kernel, atomic_load_explicit(&kernel->reason, memory_order_relaxed));
    return launch_timed(launch, kernel, is_left_out(launch) ? reason(NOT_SAMPLED) : NULL);
}

CUresult launch_intercept(struct launch *launch)
{
    if (!hook_active())
        return launch_enqueue(launch, launch->function, NULL);
    signals_hold();
    CUresult result = follow(launch);
    if (streams_any_capture() && result == CUDA_SUCCESS && launch->group)
        graph_captured_note(launch_stream(launch), launch->group->kernel, launch->number);
    if (settings.hashed && result == CUDA_SUCCESS && launch->group)
        memory_hash_log(launch, launch->group->kernel);
    if (settings.simulated_checks && launch->group)
        simulated_findings_log(launch->group->kernel->name, launch->number);
    signals_release();
    return result;
}

static CUresult plain(enum launch_form form, bool per_thread, CUfunction function, unsigned int gx, unsigned int gy,
                      unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                      CUstream stream, void **parameters, void **extra)
{
    struct launch launch = {.form = form,
                            .per_thread = per_thread,
                            .function = function,
                            .grid = {gx, gy, gz},
                            .block = {bx, by, bz},
                            .shared = shared,
                            .stream = stream,
                            .parameters = parameters,
                            .extra = extra};
    return launch_intercept(&launch);
}

static CUresult extended(bool per_thread, const CUlaunchConfig *config, CUfunction function, void **parameters,
                         void **extra)
{
    if (!config)
        return per_thread ? REAL_OR_NOT_FOUND(cuLaunchKernelEx_ptsz, config, function, parameters, extra)
                          : REAL_OR_NOT_FOUND(cuLaunchKernelEx, config, function, parameters, extra);
    struct launch launch = {.form = LAUNCH_EX,
                            .per_thread = per_thread,
                            .function = function,
                            .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                            .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                            .shared = config->sharedMemBytes,
                            .stream = config->hStream,
                            .parameters = parameters,
                            .extra = extra,
                            .config = config};
    return launch_intercept(&launch);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                        unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **parameters,
                        void **extra)
{
    return plain(LAUNCH_KERNEL, false, f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                             unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **parameters,
                             void **extra)
{
    return plain(LAUNCH_KERNEL, true, f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                                   void **parameters)
{
    return plain(LAUNCH_COOPERATIVE, false, f, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                        CUstream stream, void **parameters)
{
    return plain(LAUNCH_COOPERATIVE, true, f, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra)
{
    return extended(false, config, f, parameters, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **parameters, void **extra)
{
    return extended(true, config, f, parameters, extra);
}

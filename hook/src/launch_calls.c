/* Wrappers of the functions that launch kernels. */
#include <stdatomic.h>

#include "background.h"
#include "benchmark.h"
#include "clock.h"
#include "hook_state.h"
#include "launch.h"
#include "launch_counts.h"
#include "launch_log.h"
#include "nvtx.h"
#include "prepare.h"
#include "probed_launch.h"
#include "real.h"
#include "registry.h"
#include "schedule.h"
#include "settings.h"
#include "signals.h"
#include "streams.h"

static struct kernel *find_kernel(CUfunction function)
{
    struct kernel *kernel = registry_find(function);
    if (!kernel)
        kernel = registry_adopt(function);
    return kernel ? kernel : registry_add_stranger(function);
}

/* Where the schedule decides, it decides here for nearly all launches; the rest see when they are about to be probed
 * whether the turn is theirs. One that the log has no room for leaves it to the next. */
static bool is_left_out(const struct launch *launch)
{
    return settings.scheduled && (!schedule_near(launch->key, launch->nth_of_key) || launch_log_is_full());
}

static CUresult follow(struct launch *launch)
{
    struct kernel *kernel;
    if (!launch->function || !hook_launching() || !(kernel = find_kernel(launch->function)) ||
        !(launch->key = schedule_key(kernel, launch)))
        return launch_enqueue(launch, launch->function, NULL);
    launch->time = clock_now();
    launch->number = launch_count_next();
    nvtx_launched(launch->number);
    launch->nth_of_key = schedule_count(launch->key);
    if (settings.n_launches)
        launch->nth = atomic_fetch_add_explicit(&kernel->launches, 1, memory_order_relaxed);
    enum kernel_status status = atomic_load_explicit(&kernel->status, memory_order_acquire);
    if (status == KERNEL_NEW) {
        registry_number_kernel(kernel);
        if (stream_is_capturing(launch_stream(launch)))
            return launch_pass(launch, reason(CAPTURING));
        if (background_takes(kernel, launch))
            return launch_pass(launch, reason(BEING_PREPARED));
        status = prepare_kernel(kernel, launch);
        background_waited(clock_now() - launch->time);
        launch->time = clock_now();
    }
    if (settings.benchmark)
        return benchmark_launch(launch, kernel);
    if (status == KERNEL_PASSED)
        return launch_pass(launch, atomic_load_explicit(&kernel->reason, memory_order_relaxed));
    if (is_left_out(launch))
        return launch_pass(launch, reason(NOT_SAMPLED));
    return launch_probed(launch, &kernel->probings[0]);
}

static CUresult intercept(struct launch *launch)
{
    if (!hook_active())
        return launch_enqueue(launch, launch->function, NULL);
    signals_hold();
    CUresult result = follow(launch);
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
    return intercept(&launch);
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
    return intercept(&launch);
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

/* Wrappers of the functions that launch kernels. */
#include <stdatomic.h>

#include "background.h"
#include "benchmark.h"
#include "clock.h"
#include "hook_state.h"
#include "launch.h"
#include "launch_counts.h"
#include "nvtx.h"
#include "prepare.h"
#include "probed_launch.h"
#include "real.h"
#include "registry.h"
#include "settings.h"
#include "signals.h"
#include "streams.h"
#include "timing.h"

static struct kernel *find_kernel(CUfunction function)
{
    struct kernel *kernel = registry_find(function);
    if (!kernel)
        kernel = registry_adopt(function);
    return kernel ? kernel : registry_add_stranger(function);
}

/* Launches the original for REASON, or the probed kernel without one; timed, if it is its turn. */
static CUresult launch_timed(struct launch *launch, struct kernel *kernel, const struct reason *reason)
{
    struct timed_launch timed;
    launch->timer = timing_begin(launch, kernel, !reason && settings_selects_launch(launch->nth), &timed);
    CUresult result = reason ? launch_pass(launch, kernel, reason) : launch_probed(launch, kernel);
    timer_give(launch->timer, &timed);
    return result;
}

static CUresult follow(struct launch *launch)
{
    struct kernel *kernel;
    if (!launch->function || !hook_launching() || !(kernel = find_kernel(launch->function)))
        return launch_enqueue(launch, launch->function, NULL);
    launch->time = clock_now();
    launch->number = launch_count_next();
    nvtx_launched(launch->number);
    if (settings.n_launches)
        launch->nth = atomic_fetch_add_explicit(&kernel->launches, 1, memory_order_relaxed);
    enum kernel_status status = atomic_load_explicit(&kernel->status, memory_order_acquire);
    if (status == KERNEL_NEW) {
        registry_number_kernel(kernel);
        if (stream_is_capturing(launch_stream(launch)))
            return launch_pass(launch, kernel, reason(CAPTURING));
        if (background_takes(kernel, launch))
            return launch_timed(launch, kernel, reason(BEING_PREPARED));
        status = prepare_kernel(kernel, launch);
        background_waited(clock_now() - launch->time);
        launch->time = clock_now();
    }
    if (settings.benchmark)
        return benchmark_launch(launch, kernel);
    if (status == KERNEL_PASSED)
        return launch_timed(launch, kernel, atomic_load_explicit(&kernel->reason, memory_order_relaxed));
    return launch_timed(launch, kernel, NULL);
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

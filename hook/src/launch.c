/* Wrappers of the functions that launch kernels. */
#include "launch.h"

#include <stdatomic.h>

#include "benchmark.h"
#include "clock.h"
#include "launch_log.h"
#include "lifetime.h"
#include "nvtx.h"
#include "prepare.h"
#include "probed_launch.h"
#include "real.h"
#include "registry.h"
#include "settings.h"
#include "signals.h"
#include "streams.h"

static atomic_uint_fast64_t launches, probed;

CUstream launch_stream(const struct launch *launch)
{
    return launch->per_thread && !launch->stream ? CU_STREAM_PER_THREAD : launch->stream;
}

bool launch_is_cooperative(const struct launch *launch)
{
    if (launch->form == LAUNCH_EX)
        for (unsigned int i = 0; i < launch->config->numAttrs; i++)
            if (launch->config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
                return launch->config->attrs[i].value.cooperative != 0;
    return launch->form == LAUNCH_COOPERATIVE;
}

static CUresult enqueue_cooperative(const struct launch *l, CUfunction function, void **parameters)
{
    if (l->per_thread)
        return REAL_OR_NOT_FOUND(cuLaunchCooperativeKernel_ptsz, function, l->grid[0], l->grid[1], l->grid[2],
                                 l->block[0], l->block[1], l->block[2], l->shared, l->stream, parameters);
    return REAL_OR_NOT_FOUND(cuLaunchCooperativeKernel, function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                             l->block[1], l->block[2], l->shared, l->stream, parameters);
}

CUresult launch_enqueue(const struct launch *l, CUfunction function, void **parameters)
{
    void **extra = parameters ? NULL : l->extra;
    if (!parameters)
        parameters = l->parameters;
    if (l->form == LAUNCH_COOPERATIVE)
        return enqueue_cooperative(l, function, parameters);
    if (l->form == LAUNCH_EX)
        return l->per_thread ? REAL_OR_NOT_FOUND(cuLaunchKernelEx_ptsz, l->config, function, parameters, extra)
                             : REAL_OR_NOT_FOUND(cuLaunchKernelEx, l->config, function, parameters, extra);
    if (l->per_thread)
        return REAL_OR_NOT_FOUND(cuLaunchKernel_ptsz, function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                                 l->block[1], l->block[2], l->shared, l->stream, parameters, extra);
    return REAL_OR_NOT_FOUND(cuLaunchKernel, function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
                             l->block[2], l->shared, l->stream, parameters, extra);
}

CUresult launch_pass(const struct launch *launch, struct kernel *kernel, const struct reason *reason)
{
    CUresult result = launch_enqueue(launch, launch->function, NULL);
    launch_log_passed(launch, kernel, reason, result);
    return result;
}

uint64_t launch_count(void)
{
    return atomic_load(&launches);
}

uint64_t launch_probed_count(void)
{
    return atomic_load(&probed);
}

void launch_count_probed(void)
{
    atomic_fetch_add_explicit(&probed, 1, memory_order_relaxed);
}

void launch_reset(void)
{
    atomic_store(&probed, 0);
    atomic_store(&launches, 0);
}

static struct kernel *find_kernel(CUfunction function)
{
    struct kernel *kernel = registry_find(function);
    if (!kernel)
        kernel = registry_adopt(function);
    return kernel ? kernel : registry_add_stranger(function);
}

static CUresult follow(struct launch *launch)
{
    struct kernel *kernel;
    if (!launch->function || !hook_launching() || !(kernel = find_kernel(launch->function)))
        return launch_enqueue(launch, launch->function, NULL);
    launch->time = clock_now();
    launch->number = atomic_fetch_add_explicit(&launches, 1, memory_order_relaxed);
    nvtx_launched(launch->number);
    if (settings.n_launches)
        launch->nth = atomic_fetch_add_explicit(&kernel->launches, 1, memory_order_relaxed);
    enum kernel_status status = atomic_load_explicit(&kernel->status, memory_order_acquire);
    if (status == KERNEL_NEW) {
        registry_number_kernel(kernel);
        if (stream_is_capturing(launch_stream(launch)))
            return launch_pass(launch, kernel, reason(CAPTURING));
        status = prepare_kernel(kernel, launch);
        launch->time = clock_now();
    }
    if (settings.benchmark)
        return benchmark_launch(launch, kernel);
    if (status == KERNEL_PASSED)
        return launch_pass(launch, kernel, atomic_load_explicit(&kernel->reason, memory_order_relaxed));
    return launch_probed(launch, kernel);
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

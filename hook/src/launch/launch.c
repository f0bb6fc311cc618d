#include "launch.h"

#include "launch_log.h"
#include "memory_pressure.h"
#include "real.h"
#include "watchdog.h"
#include "watched_launches.h"

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

static CUresult enqueue(const struct launch *l, CUfunction function, void **parameters)
{
    if (l->form == LAUNCH_GRID && !parameters)
        return REAL_OR_NOT_FOUND(cuLaunchGridAsync, function, (int)l->grid[0], (int)l->grid[1], l->stream);
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

/* Launches once more if the program's launch lacked memory. */
static CUresult enqueue_with_memory(const struct launch *launch, CUfunction function, void **parameters)
{
    CUresult result = enqueue(launch, function, parameters);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && function == launch->function && memory_press()) {
        result = enqueue(launch, function, parameters);
        memory_relieve();
    }
    return result;
}

CUresult launch_enqueue(const struct launch *launch, CUfunction function, void **parameters)
{
    if (!launch->timer)
        return enqueue_with_memory(launch, function, parameters);
    CUstream stream = launch_stream(launch);
    timer_start(launch->timer, stream);
    CUresult result = enqueue_with_memory(launch, function, parameters);
    timer_stop(launch->timer, stream, function != launch->function, result);
    return result;
}

CUresult launch_pass(const struct launch *launch, const struct reason *reason)
{
    const size_t place = watchdog_passes(launch, reason);
    CUresult result = launch_enqueue(launch, launch->function, NULL);
    unwatched_launch_ends(place);
    launch_log_passed(launch, reason, result);
    return result;
}

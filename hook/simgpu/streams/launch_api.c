/* Launches as programs ask for them. */

#include "capture.h"
#include "cluster.h"
#include "current.h"
#include "launch.h"
#include "work_kinds.h"

static CUresult run(const struct launch *launch)
{
    struct context *context;
    struct work work = {.kind = &kernel_work};
    CUresult result = enter(&context);
    if (result)
        return result;
    result = launch_pack(launch, &work.of.kernel);
    if (!result && capture_of(launch->stream))
        return leave(capture_work(launch->stream, &work));
    if (leave(result))
        return result;
    result = work_run(&work);
    work_free(&work);
    return result;
}

API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,
                   void **extra)
{
    return run(&(struct launch){.function = function,
                                .grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .dynamic_shared_bytes = shared_bytes,
                                .stream = stream,
                                .parameters = parameters,
                                .extra = extra});
}
PER_THREAD_STREAM(cuLaunchKernel);

API cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                              void **parameters)
{
    return run(&(struct launch){.function = function,
                                .grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .dynamic_shared_bytes = shared_bytes,
                                .stream = stream,
                                .cooperative = true,
                                .parameters = parameters});
}
PER_THREAD_STREAM(cuLaunchCooperativeKernel);

API cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    if (!config || (config->attribute_count && !config->attributes))
        return CUDA_ERROR_INVALID_VALUE;
    struct launch launch = {.function = function,
                            .grid = {config->grid_x, config->grid_y, config->grid_z},
                            .block = {config->block_x, config->block_y, config->block_z},
                            .dynamic_shared_bytes = config->shared_bytes,
                            .stream = config->stream,
                            .parameters = parameters,
                            .extra = extra};
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const struct CUlaunchAttribute *attribute = &config->attributes[i];
        if (attribute->id == LAUNCH_ATTRIBUTE_COOPERATIVE)
            launch.cooperative = attribute->value.cooperative != 0;
    }
    cluster_of_config(config, launch.cluster);
    return run(&launch);
}
PER_THREAD_STREAM(cuLaunchKernelEx);

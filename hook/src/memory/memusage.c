#include "memusage.h"

#include <pthread.h>

#include "bench_buffer.h"
#include "capacities.h"
#include "errors.h"
#include "launch_log.h"
#include "prepare.h"
#include "probed_launch.h"
#include "real.h"
#include "reasons.h"
#include "residency.h"
#include "rotation.h"
#include "settings.h"
#include "shared_variables.h"
#include "streams.h"
#include "variants.h"

/* One launch counts at a time: it is waited for, and its counts are the next one's capacities. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* With the capacities of a launch that has all the memory it wants. Returns why there are none, or NULL. */
static const struct reason *size_up(struct launch *launch, struct kernel_probe *probe)
{
    const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    const struct reason *reason = sampling_refuses(&probe->sampling, blocks);
    size_t unused;
    if (reason)
        return reason;
    launch->capacities = capacities_choose(probe, launch->grid, launch->block, SIZE_MAX);
    if (!launch->capacities)
        return reason(HOST_MEMORY);
    return layout_device_size(probe, launch->capacities, launch->grid, launch->block, &unused)
               ? NULL
               : reason(TOO_MANY_RECORDS);
}

/* Resources of a launch that counts. */
struct counting {
    struct variant *variant;
    struct bench_buffer buffer;
    struct arguments *arguments;
};

/* Returns why the launch cannot count, or NULL. */
static const struct reason *equip(struct counting *counting, struct launch *launch, struct kernel_probe *probe)
{
    const struct reason *reason;
    CUcontext context = NULL;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) != CUDA_SUCCESS || !context)
        return reason(NO_CONTEXT);
    if (!(counting->variant = variants_get(probe, launch, context, false, &reason)) ||
        (reason = residency_refuses(counting->variant, probe, launch)))
        return reason;
    if (!(launch->capacities = capacities_counting(probe)))
        return reason(HOST_MEMORY);
    reason = bench_buffer_make_sized(&counting->buffer, launch, probe);
    if (!reason && !(counting->arguments = arguments_take()))
        reason = reason(HOST_MEMORY);
    if (!reason)
        reason = arguments_fill(counting->arguments, launch, probe, counting->variant, counting->buffer.memory);
    return reason;
}

static CUresult run(const struct counting *counting, const struct launch *launch, const struct kernel_probe *probe)
{
    const CUstream stream = launch_stream(launch);
    const struct bench_buffer *buffer = &counting->buffer;
    CUresult result = shared_copy_constants(probe, counting->variant, stream);
    if (result == CUDA_SUCCESS && buffer->size)
        result = REAL_OR_NOT_FOUND(cuMemsetD8Async, buffer->memory, 0, buffer->size, stream);
    if (result == CUDA_SUCCESS)
        result = launch_enqueue(launch, counting->variant->function, counting->arguments->pointers);
    return result;
}

/* The probed kernel does not start: the original decides. */
static CUresult launch_original(struct launch *launch, struct kernel_probe *probe, CUresult error)
{
    const struct reason *reason = reason_with(LAUNCH_FAILED, reason_error_name(error));
    const CUresult result = launch_pass(launch, reason);
    if (result == CUDA_SUCCESS)
        prepare_give_up(probe, launch, reason);
    return result;
}

/* The reason why the memory of a launch that has counted is not known, or NULL. */
static const struct reason *learn(const struct counting *counting, struct launch *launch, struct kernel_probe *probe)
{
    return bench_buffer_learn(&counting->buffer, launch, probe) ? size_up(launch, probe) : reason(HOST_MEMORY);
}

/* The kernel that counts instead of the original; what it counted decides the memory. */
static CUresult count(struct counting *counting, struct launch *launch, struct kernel_probe *probe)
{
    const CUresult result = run(counting, launch, probe);
    if (result != CUDA_SUCCESS && !error_is_sticky(result))
        return launch_original(launch, probe, result);
    const struct reason *reason = result == CUDA_SUCCESS ? learn(counting, launch, probe) : NULL;
    if (reason)
        launch_log_passed(launch, reason, result);
    else
        launch_log_sized(launch, probe, reason(ONLY_COUNTED), result);
    return result;
}

static CUresult launch_counting(struct launch *launch, struct kernel_probe *probe)
{
    struct counting counting = {0};
    pthread_mutex_lock(&mutex);
    const int mode = capture_mode_relax();
    const struct reason *reason = equip(&counting, launch, probe);
    const CUresult result = reason ? launch_pass(launch, reason) : count(&counting, launch, probe);
    bench_buffer_free(&counting.buffer);
    arguments_give(counting.arguments);
    capture_mode_restore(mode);
    pthread_mutex_unlock(&mutex);
    return result;
}

/* The first in turn that can be sized; else NULL, and in *REASON why not. That many launches of one shape as there are
 * probes meet all of them: no one serves turns here, so that those of other shapes do not count. */
static struct kernel_probe *choose(struct launch *launch, struct kernel *kernel, const struct reason **reason)
{
    struct kernel_probe *order[MOST_PROBES];
    const size_t n = rotation_order(kernel, launch, order);
    *reason = n ? NULL : atomic_load(&kernel->probes[0].reason);
    for (size_t i = 0; i < n; i++) {
        struct kernel_probe *probe = order[(launch->nth_of_group + i) % n];
        const struct reason *refused = atomic_load(&probe->reason); /* of the only probe to be used */
        if (!refused)
            refused = size_up(launch, probe);
        if (!refused)
            return probe;
        *reason = *reason ? *reason : refused;
    }
    return NULL;
}

CUresult memusage_launch(struct launch *launch, struct kernel *kernel)
{
    const struct reason *reason;
    if (atomic_load_explicit(&kernel->status, memory_order_acquire) == KERNEL_PASSED)
        return launch_pass(launch, atomic_load(&kernel->reason));
    if (!settings_selects_launch(launch->nth))
        return launch_pass(launch, reason(NOT_SELECTED));
    struct kernel_probe *probe = choose(launch, kernel, &reason);
    if (!probe)
        return launch_pass(launch, reason);
    if (probe->dynamic)
        return launch_counting(launch, probe);
    const CUresult result = launch_enqueue(launch, launch->function, NULL);
    launch_log_sized(launch, probe, reason(ONLY_SIZED), result);
    return result;
}

void memusage_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}

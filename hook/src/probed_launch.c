#include "probed_launch.h"

#include "buffers.h"
#include "capacities.h"
#include "control.h"
#include "launch_counts.h"
#include "launch_log.h"
#include "prepare.h"
#include "real.h"
#include "reasons.h"
#include "residency.h"
#include "result.h"
#include "schedule.h"
#include "settings.h"
#include "shared_variables.h"
#include "streams.h"
#include "variants.h"

bool error_is_sticky(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

CUresult probed_log_launch(const struct launch *launch, const struct probing *probing,
                           const struct arguments *arguments, CUresult result)
{
    launch_log_probed(launch, probing, arguments->pointers, result);
    if (result == CUDA_SUCCESS)
        launch_count_probed();
    return result;
}

/* The probed kernel needs more than the device gives, or the launch itself is wrong: the original decides. */
static CUresult launch_original(const struct launch *launch, struct probing *probing, CUresult error)
{
    const struct reason *reason = reason_with(LAUNCH_FAILED, reason_error_name(error));
    CUresult result = launch_pass(launch, reason);
    if (result == CUDA_SUCCESS)
        prepare_give_up(probing, launch, reason);
    return result;
}

static uint32_t hash_of_shape(const struct launch *launch)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < 3; i++)
        hash = ((hash ^ launch->grid[i]) * 16777619u ^ launch->block[i]) * 16777619u;
    hash = (hash ^ launch->shared) * 16777619u;
    return hash ^ hash >> 16;
}

/* The probes of a kernel take turns over the launches that may be probed. Those of one shape have turns of their own:
 * shapes that alternate would else meet the same probe each time. */
static struct probing *next_probing(struct kernel *kernel, const struct launch *launch)
{
    const size_t n = kernel->n_probings;
    const uint64_t only = atomic_load_explicit(&control->only_probe, memory_order_relaxed);
    if (only && only <= n)
        return &kernel->probings[only - 1];
    struct probing *probing = &kernel->probings[0];
    atomic_uint *turn = n > 1 ? &kernel->turns[hash_of_shape(launch) % KERNEL_TURNS] : NULL;
    for (size_t i = 0; n > 1 && i < n; i++) {
        probing = &kernel->probings[atomic_fetch_add_explicit(turn, 1, memory_order_relaxed) % n];
        if (!atomic_load_explicit(&probing->reason, memory_order_relaxed))
            break;
    }
    return probing;
}

static const struct reason *find_variant(const struct launch *launch, struct kernel *kernel, struct variant **variant,
                                         struct probing **probing)
{
    CUcontext context = NULL;
    const struct reason *reason = NULL;
    if (stream_is_capturing(launch_stream(launch)))
        return reason(CAPTURING);
    if (!settings_selects_launch(launch->nth))
        return reason(NOT_SELECTED);
    if (settings.scheduled && !schedule_take(launch->key, launch->nth_of_key, settings.heavy))
        return reason(NOT_SAMPLED);
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) != CUDA_SUCCESS || !context)
        return reason(NO_CONTEXT);
    *probing = next_probing(kernel, launch);
    *variant = variants_get(*probing, launch, context, &reason);
    return reason;
}

const struct reason *probed_size(struct launch *launch, struct probing *probing, struct variant *variant, size_t *size)
{
    const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    const struct reason *reason = sampling_refuses(&probing->sampling, blocks);
    if (!reason)
        reason = residency_refuses(variant, probing->kernel, launch);
    if (reason)
        return reason;
    launch->capacities = capacities_choose(probing, launch->grid, launch->block, variant->pool->limit);
    if (probing->dynamic && !launch->capacities)
        return reason(HOST_MEMORY);
    if (!layout_device_size(probing, launch->capacities, launch->grid, launch->block, size))
        return reason(TOO_MANY_RECORDS);
    return NULL;
}

/* What a probed launch holds: memory for its records, and room in the trace for their file. */
struct holding {
    struct chunk *chunk;
    struct claim claim;
    size_t size, saved; /* bytes of the records, and of what is saved of them */
};

static const struct reason *take(struct holding *holding, struct launch *launch, struct probing *probing,
                                 struct variant *variant)
{
    const struct reason *reason = probed_size(launch, probing, variant, &holding->size);
    if (!reason && !layout_saved_size(probing, launch->capacities, launch->grid, launch->block, &holding->saved))
        reason = reason(TOO_MANY_RECORDS);
    if (!reason)
        reason = result_reserve(probing, holding->saved);
    if (reason)
        return reason;
    holding->chunk = buffers_take(variant->pool, launch, probing, holding->size, &holding->claim, &reason);
    if (!holding->chunk)
        result_unreserve(probing, holding->saved);
    return holding->chunk ? NULL : reason;
}

/* From here on the result may be saved, and logged. */
static void launched(const struct holding *holding, const struct launch *launch, const struct probing *probing,
                     CUresult result)
{
    if (result != CUDA_SUCCESS)
        result_unreserve(probing, holding->saved);
    buffers_launched(holding->chunk, &holding->claim, launch, result);
}

static const struct reason *share_constants(const struct launch *launch, const struct probing *probing,
                                            const struct variant *variant)
{
    const CUresult result = shared_copy_constants(probing, variant, launch_stream(launch));
    return result == CUDA_SUCCESS ? NULL : reason_with(CONSTANTS_NOT_COPIED, reason_error_name(result));
}

CUresult launch_probed(struct launch *launch, struct kernel *kernel)
{
    struct variant *variant;
    struct probing *probing;
    struct arguments arguments;
    struct holding holding;
    const struct reason *reason = find_variant(launch, kernel, &variant, &probing);
    if (!reason)
        reason = take(&holding, launch, probing, variant);
    if (reason)
        return launch_pass(launch, reason);
    reason = arguments_fill(&arguments, launch, probing, variant, holding.claim.memory);
    if (!reason)
        reason = share_constants(launch, probing, variant);
    if (reason) {
        launched(&holding, launch, probing, CUDA_ERROR_INVALID_VALUE);
        return launch_pass(launch, reason);
    }
    CUresult result = launch_enqueue(launch, variant->function, arguments.pointers);
    probed_log_launch(launch, probing, &arguments, result);
    launched(&holding, launch, probing, result);
    if (result == CUDA_SUCCESS || error_is_sticky(result))
        return result;
    return launch_original(launch, probing, result);
}

#include "holding.h"

#include "background.h"
#include "capacities.h"
#include "clock.h"
#include "prepare.h"
#include "probed_size.h"
#include "reasons.h"
#include "residency.h"
#include "result.h"
#include "variants.h"

/* With the launch's capacities. */
static const struct reason *take(struct holding *holding, const struct launch *launch)
{
    struct probing *probing = holding->probing;
    const struct reason *reason;
    if (!layout_device_size(probing, launch->capacities, launch->grid, launch->block, &holding->size) ||
        !layout_saved_size(probing, launch->capacities, launch->grid, launch->block, &holding->saved))
        return reason(TOO_MANY_RECORDS);
    if ((reason = result_reserve(probing, holding->saved)))
        return reason;
    holding->chunk = buffers_take(holding->variant->pool, launch, probing, holding->size, &holding->claim, &reason);
    if (!holding->chunk)
        result_unreserve(probing, holding->saved);
    return holding->chunk ? NULL : reason;
}

/* Whether less of the launch might be recorded. */
static bool is_too_dear(const struct reason *reason)
{
    switch (reason->code) {
    case REASON_TRACE_SHARE:
    case REASON_TRACE_FULL:
    case REASON_LAUNCH_TOO_LARGE:
    case REASON_TOO_MANY_RECORDS:
        return true;
    default:
        return false;
    }
}

static bool take_reduced(struct holding *holding, struct launch *launch)
{
    const struct capacities *reduced = capacities_reduced(holding->probing, launch->capacities);
    if (!reduced)
        return false;
    launch->capacities = reduced;
    return !take(holding, launch);
}

/* Asks for the sampled form if this is the first launch that needs it. */
static bool has_sampled_form(struct probing *probing, const struct launch *launch)
{
    struct sampled_form *form = &probing->sampled_form;
    if (!atomic_load_explicit(&form->ready, memory_order_acquire) && !background_takes_form(probing, launch)) {
        const uint64_t began = clock_now();
        prepare_sampled_form(probing);
        background_waited(clock_now() - began);
    }
    return atomic_load_explicit(&form->ready, memory_order_acquire) && !atomic_load(&form->reason);
}

static bool take_sample(struct holding *holding, struct launch *launch, CUcontext context)
{
    const struct sampling spread = {SAMPLE_SPREAD, 0, 1};
    struct probing *probing = holding->probing;
    const struct reason *unused;
    if (probing->sampling.kind != SAMPLE_ALL || probing->way == WAY_GRAFT || /* whose patches are at other places */
        sampling_refuses(&spread, (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2]))
        return false;
    const struct capacities *sample =
        capacities_sample(probing, launch->grid, launch->block, probed_memory(holding->variant), result_room(probing));
    if (!sample || !has_sampled_form(probing, launch) ||
        !(holding->variant = variants_get(probing, launch, context, true, &unused)) ||
        residency_refuses(holding->variant, probing, launch))
        return false;
    launch->capacities = sample;
    return !take(holding, launch);
}

const struct reason *holding_take(struct holding *holding, struct launch *launch, struct probing *probing,
                                  CUcontext context)
{
    const struct reason *reason;
    size_t unused;
    *holding = (struct holding){.probing = probing};
    if (!(holding->variant = variants_get(probing, launch, context, false, &reason)))
        return reason;
    reason = probed_size(launch, probing, holding->variant, &unused);
    if (!reason)
        reason = take(holding, launch);
    if (reason && is_too_dear(reason) && (take_reduced(holding, launch) || take_sample(holding, launch, context)))
        return NULL;
    return reason;
}

void holding_launched(const struct holding *holding, const struct launch *launch, CUresult result)
{
    if (result != CUDA_SUCCESS)
        result_unreserve(holding->probing, holding->saved);
    buffers_launched(holding->chunk, &holding->claim, launch, result);
}

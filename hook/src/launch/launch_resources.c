#include "launch_resources.h"

#include "background.h"
#include "capacities.h"
#include "clock.h"
#include "prepare.h"
#include "reasons.h"
#include "record_bytes.h"
#include "residency.h"
#include "result.h"
#include "sampled_form.h"
#include "variants.h"

/* Gives back what is reserved for the files of LAUNCH, but of those of END and behind. */
static void unreserve(struct kernel_probe *probe, const struct launch *launch, const struct kernel_probe *end)
{
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(probe, part)) && part != end;) {
        size_t saved = 0;
        if (part->resident)
            continue;
        layout_saved_size(part, launch->capacities, launch->grid, launch->block, &saved);
        result_unreserve(part, saved);
    }
}

/* Reserves a file for each probe whose records the launch leaves. Returns why there is no room, or NULL. */
static const struct reason *reserve(struct kernel_probe *probe, const struct launch *launch)
{
    const struct reason *reason = NULL;
    struct kernel_probe *part = NULL;
    while (!reason && (part = kernel_probe_next(probe, part))) {
        size_t saved = 0;
        if (part->resident)
            continue;
        reason = layout_saved_size(part, launch->capacities, launch->grid, launch->block, &saved)
                     ? result_reserve(part, saved)
                     : reason(TOO_MANY_RECORDS);
    }
    if (reason)
        unreserve(probe, launch, part);
    return reason;
}

/* With the launch's capacities. */
static const struct reason *take(struct launch_resources *resources, const struct launch *launch)
{
    struct kernel_probe *probe = resources->probe;
    const struct reason *reason;
    if (!layout_device_size(probe, launch->capacities, launch->grid, launch->block, &resources->size))
        return reason(TOO_MANY_RECORDS);
    if (!resources->size && probe->resident)
        return NULL;
    if ((reason = reserve(probe, launch)))
        return reason;
    resources->chunk =
        buffers_take(resources->variant->pool, launch, probe, resources->size, &resources->claim, &reason);
    if (!resources->chunk)
        unreserve(probe, launch, NULL);
    return resources->chunk ? NULL : reason;
}

/* True if less of the launch might be recorded. */
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

bool launch_resources_separate(const struct kernel_probe *probe, const struct reason *reason)
{
    return probe == probe->kernel->fused &&
           (reason->code == REASON_LAUNCH_TOO_LARGE || reason->code == REASON_TOO_MANY_RECORDS);
}

static bool take_reduced(struct launch_resources *resources, struct launch *launch)
{
    const struct capacities *reduced = capacities_reduced(resources->probe, launch->capacities);
    if (!reduced)
        return false;
    launch->capacities = reduced;
    return !take(resources, launch);
}

/* Asks for the sampled form if this is the first launch that needs it. */
static bool has_sampled_form(struct kernel_probe *probe, const struct launch *launch)
{
    struct sampled_form *form = &probe->sampled_form;
    if (!atomic_load_explicit(&form->ready, memory_order_acquire) && !background_takes_form(probe, launch)) {
        const uint64_t began = clock_now();
        sampled_form_prepare(probe);
        background_waited(clock_now() - began);
    }
    return atomic_load_explicit(&form->ready, memory_order_acquire) && !atomic_load(&form->reason);
}

static bool take_sample(struct launch_resources *resources, struct launch *launch, CUcontext context)
{
    const struct sampling spread = {SAMPLE_SPREAD, 0, 1};
    struct kernel_probe *probe = resources->probe;
    const struct reason *unused;
    if (probe->sampling.kind != SAMPLE_ALL || probe->way == WAY_GRAFT || /* whose patches are at other places */
        sampling_refuses(&spread, (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2]))
        return false;
    const struct capacities *sample = capacities_sample(probe, launch->grid, launch->block,
                                                        record_bytes_limit(resources->variant), result_room(probe));
    if (!sample || !has_sampled_form(probe, launch) ||
        !(resources->variant = variants_get(probe, launch, context, true, &unused)) ||
        residency_refuses(resources->variant, probe, launch))
        return false;
    launch->capacities = sample;
    return !take(resources, launch);
}

const struct reason *launch_resources_take(struct launch_resources *resources, struct launch *launch,
                                           struct kernel_probe *probe, CUcontext context)
{
    const struct reason *reason = atomic_load_explicit(&probe->reason, memory_order_acquire);
    size_t unused;
    *resources = (struct launch_resources){.probe = probe};
    if (reason) /* of the only probe to be used */
        return reason;
    if (!(resources->variant = variants_get(probe, launch, context, false, &reason)))
        return reason;
    reason = record_bytes(launch, probe, resources->variant, &unused);
    if (!reason)
        reason = take(resources, launch);
    if (reason && !launch_resources_separate(probe, reason) && is_too_dear(reason) &&
        (take_reduced(resources, launch) || take_sample(resources, launch, context)))
        return NULL;
    return reason;
}

void launch_resources_launched(const struct launch_resources *resources, const struct launch *launch, CUresult result)
{
    if (!resources->chunk)
        return;
    if (result != CUDA_SUCCESS)
        unreserve(resources->probe, launch, NULL);
    buffers_launched(resources->chunk, &resources->claim, launch, result);
}

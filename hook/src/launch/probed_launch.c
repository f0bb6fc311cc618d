#include "probed_launch.h"

#include "errors.h"
#include "launch_counts.h"
#include "launch_log.h"
#include "prepare.h"
#include "probed_enqueue.h"
#include "real.h"
#include "reasons.h"
#include "replayed_probes.h"
#include "reservations.h"
#include "rotation.h"
#include "sampled_form.h"
#include "schedule.h"
#include "settings.h"
#include "watched_launches.h"

CUresult probed_log_launch(const struct launch *launch, const struct kernel_probe *probe,
                           const struct arguments *arguments, CUresult result)
{
    if (!probe->resident || watched_launch_logs(launch->number))
        launch_log_probed(launch, probe, arguments->pointers, result);
    if (result == CUDA_SUCCESS)
        launch_count_probed();
    return result;
}

/* The probed kernel needs more than the device gives, or the launch itself is wrong: the original decides. */
static CUresult launch_original(const struct launch *launch, const struct launch_resources *resources, CUresult error)
{
    const struct reason *reason = reason_with(LAUNCH_FAILED, reason_error_name(error));
    CUresult result = launch_pass(launch, reason);
    if (result == CUDA_SUCCESS && resources->variant->sampled)
        sampled_form_give_up(resources->probe, reason);
    else if (result == CUDA_SUCCESS)
        prepare_give_up(resources->probe, launch, reason);
    return result;
}

/* The reason why this launch must not be probed, no matter what the probe; NULL if it may be, in CONTEXT. */
static const struct reason *refusal(const struct launch *launch, CUcontext *context)
{
    if (!settings_selects_launch(launch->nth))
        return reason(NOT_SELECTED);
    if (settings.scheduled && !schedule_take(launch->group, launch->nth_of_group, settings.heavy))
        return reason(NOT_SAMPLED);
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, context) != CUDA_SUCCESS || !*context)
        return reason(NO_CONTEXT);
    return NULL;
}

const struct reason *probed_take_in_turn(struct launch_resources *resources, struct launch *launch,
                                         struct kernel *kernel, CUcontext context)
{
    struct kernel_probe *order[MOST_PROBES];
    const size_t n = rotation_order(kernel, launch, order);
    const struct reason *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct reason *reason = launch_resources_take(resources, launch, order[i], context);
        if (!reason) {
            rotation_served(order[i], launch);
            return NULL;
        }
        if (launch_resources_separate(order[i], reason)) {
            prepare_give_up(order[i], launch, reason);
            return probed_take_in_turn(resources, launch, kernel, context);
        }
        first = first ? first : reason;
    }
    return first ? first : atomic_load(&kernel->probes[0].reason);
}

/* The probed kernel with the memory of RESOURCES. */
static CUresult launch_with(struct launch *launch, struct launch_resources *resources, struct arguments *arguments)
{
    CUresult result;
    const struct reason *reason = probed_enqueue(launch, resources, arguments, &result);
    if (reason)
        return launch_pass(launch, reason);
    probed_log_launch(launch, resources->probe, arguments, result);
    launch_resources_launched(resources, launch, result);
    if (result == CUDA_SUCCESS && !kernel_probe_leaves_records(resources->probe))
        launch_count_watched();
    if (result == CUDA_SUCCESS || error_is_sticky(result))
        return result;
    return launch_original(launch, resources, result);
}

CUresult launch_probed(struct launch *launch, struct kernel *kernel)
{
    struct launch_resources resources;
    CUcontext context = NULL;
    const struct reason *reason = refusal(launch, &context);
    if (!reason && settings.replays)
        replayed_probes_launch(launch, kernel, context);
    if (!reason)
        reason = probed_take_in_turn(&resources, launch, kernel, context);
    if (reason) {
        budget_refused(reason);
        return launch_pass(launch, reason);
    }
    struct arguments *arguments = arguments_take();
    const CUresult result = launch_with(launch, &resources, arguments);
    arguments_give(arguments);
    return result;
}

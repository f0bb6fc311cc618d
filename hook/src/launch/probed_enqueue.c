#include "probed_enqueue.h"

#include "reasons.h"
#include "shared_variables.h"
#include "watchdog.h"

static const struct reason *share_constants(const struct launch *launch, const struct kernel_probe *probe,
                                            const struct variant *variant)
{
    const CUresult result = shared_copy_constants(probe, variant, launch_stream(launch));
    return result == CUDA_SUCCESS ? NULL : reason_with(CONSTANTS_NOT_COPIED, reason_error_name(result));
}

const struct reason *probed_enqueue(const struct launch *launch, struct launch_resources *resources,
                                    struct arguments *arguments, CUresult *result)
{
    const struct reason *reason =
        arguments ? arguments_fill(arguments, launch, resources->probe, resources->variant, resources->claim.memory)
                  : reason(HOST_MEMORY);
    if (!reason)
        reason = share_constants(launch, resources->probe, resources->variant);
    if (reason) {
        launch_resources_launched(resources, launch, CUDA_ERROR_INVALID_VALUE);
        return reason;
    }
    if (resources->probe->resident)
        watchdog_expects(launch, resources->probe);
    *result = launch_enqueue(launch, resources->variant->function, arguments->pointers);
    if (resources->probe->resident)
        watchdog_returns(launch);
    return NULL;
}

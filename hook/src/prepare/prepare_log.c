#include "prepare_log.h"

#include <stdio.h>

#include "event_log.h"
#include "figures.h"
#include "kernel_info.h"
#include "kernels.h"
#include "registry.h"
#include "variants.h"

enum { FUSED_NAMES_SIZE = 2048 };

const struct kernel_probe *prepare_first_usable(struct kernel *kernel)
{
    for (size_t i = 0; i < kernel->n_probes; i++)
        if (!atomic_load(&kernel->probes[i].reason))
            return kernel_probe_launched(&kernel->probes[i]);
    return &kernel->probes[0];
}

void prepare_log_fused(const struct kernel *kernel)
{
    char names[FUSED_NAMES_SIZE];
    int used = 0;
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(kernel->fused, part));)
        if ((size_t)used < sizeof names)
            used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", used ? "," : "", part->name);
    const struct reason *reason = atomic_load(&kernel->fused->reason);
    event_log("[probe] fused kernel %u probes %s reason %s\n", kernel->index, names, reason ? reason->written : "-");
}

void prepare_log_probe(struct kernel_probe *probe, const struct launch *launch, struct prepare_result result)
{
    char resources[FIGURES_SIZE];
    const struct variant *variant =
        result.reason ? NULL : variants_newest(launch->instance, kernel_probe_launched(probe));
    const struct reason *reason = result.reason ? result.reason : probe->note;
    figures_of(variant ? variant->function : NULL, launch, resources);
    event_log("[probing] %u %s %s probe %s reason %s\n", probe->kernel->index, result.status, resources, probe->name,
              reason ? reason->written : "-");
}

void prepare_log_function(struct kernel *kernel, const struct launch *launch)
{
    const struct kernel_probe *probe = prepare_first_usable(kernel);
    const struct variant *variant = variants_newest(launch->instance, probe);
    char resources[FIGURES_SIZE];
    figures_of(variant ? variant->function : NULL, launch, resources);
    event_log("[kernel] %u probed-function %s way %s\n", kernel->index, resources, way_name(probe->way));
}

/* Also for a kernel that is skipped: its registers, memory and occupancy belong to the row. */
void prepare_log_result(struct kernel *kernel, const struct launch *launch, struct prepare_result result)
{
    const struct kernel_probe *probe = prepare_first_usable(kernel);
    char resources[FIGURES_SIZE];
    figures_of(registry_function(launch->instance, launch->function), launch, resources);
    const struct reason *reason = result.reason ? result.reason : probe->note;
    event_log("[kernel] %u %s %s name %s reason %s\n", kernel->index, result.status, resources, kernel->name,
              reason ? reason->written : "-");
    if (!result.reason)
        prepare_log_function(kernel, launch);
    event_log("[exec] funcmap-find %p %s\n", (void *)launch->function, result.reason ? "fail" : "success");
}

static const struct reason *unprepared_reason(const struct kernel *kernel)
{
    const struct reason *reason = atomic_load(&kernel->unprepared);
    return reason ? reason : reason(BEING_PREPARED); /* by a thread that waits for it */
}

static void log_unprepared(struct kernel *kernel, void *unused)
{
    (void)unused;
    if (kernel->index != KERNEL_NO_INDEX && atomic_load(&kernel->status) == KERNEL_NEW)
        event_log_summary("[kernel] %u skipped registers - local - shared - blocks - name %s reason %s\n",
                          kernel->index, kernel->name, unprepared_reason(kernel)->written);
}

void prepare_log_unprepared(void)
{
    kernels_each(log_unprepared, NULL);
}

static void log_unlisted(struct kernel *kernel, void *unused)
{
    (void)unused;
    if (atomic_load(&kernel->unlisted))
        event_log("[budget] unlisted kernel %u launches %llu\n", kernel->index,
                  (unsigned long long)atomic_load(&kernel->unlisted));
}

void prepare_log_unlisted(void)
{
    event_log_launches(); /* the last of them may be unlisted, too */
    kernels_each(log_unlisted, NULL);
}

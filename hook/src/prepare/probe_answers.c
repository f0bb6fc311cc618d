#define _GNU_SOURCE
#include "probe_answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "event_log.h"
#include "fused.h"
#include "kernel_folder.h"
#include "kernel_info.h"
#include "prepare_log.h"
#include "real.h"
#include "reasons.h"
#include "schedule.h"
#include "settings.h"
#include "variants.h"

/* A part of a fused probe that is prepared by itself afterwards has maps already, which launches may be using. */
static const struct reason *read_info(struct kernel_probe *probe, const char *directory)
{
    char *path;
    if (asprintf(&path, "%s/kernel.info", directory) < 0)
        return reason(HOST_MEMORY);
    const struct reason *reason = probe->maps ? kernel_info_agrees(path, probe, false) : kernel_info_read(path, probe);
    if (!reason)
        event_log("[probe] read %s name %s n_param %zu n_probe %zu\n", path, probe->kernel->name,
                  probe->kernel->n_parameters, probe->n_maps);
    free(path);
    return reason;
}

static struct prepare_result read_answer(struct kernel_probe *probe, const char *directory,
                                         const struct engine_answer *answer)
{
    if (!*answer->text || strchr(answer->text, '/'))
        return prepare_failed(reason_with(ENGINE_FILE, answer->text));
    const struct reason *reason = read_info(probe, directory);
    if (reason)
        return prepare_failed(reason);
    if (probe->sampled != (probe->sampling.kind != SAMPLE_ALL))
        return prepare_failed(reason(SAMPLE_DISAGREES));
    if (asprintf(&probe->load_path, "%s/%s", directory, answer->text) < 0)
        return prepare_failed(reason(HOST_MEMORY));
    return (struct prepare_result){"probed", NULL};
}

/* A driver ends with the program, in its main thread, while other threads prepare kernels. */
static bool has_driver_ended(void)
{
    CUcontext context;
    return REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) == CUDA_ERROR_DEINITIALIZED;
}

/* Reads what the engine made for one probe, in DIRECTORY, and loads it if LOADS. */
static struct prepare_result make_probe(struct kernel_probe *probe, const struct launch *launch, const char *directory,
                                        const struct engine_answer *answer, bool loads)
{
    CUcontext context = NULL;
    if (answer->outcome == ENGINE_SKIPPED)
        return prepare_skipped(answer->reason);
    if (answer->outcome == ENGINE_FAILED)
        return prepare_failed(answer->reason);
    struct prepare_result result = read_answer(probe, directory, answer);
    if (result.reason || !loads)
        return result;
    const struct reason *reason = reason(NO_CONTEXT);
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) == CUDA_SUCCESS && context &&
        variants_get(probe, launch, context, false, &reason))
        return result;
    return has_driver_ended() ? prepare_skipped(reason(BEING_PREPARED)) : prepare_failed(reason);
}

/* The files of one probe among several are in a folder of its own. */
static struct prepare_result read_probe(struct kernel_probe *probe, const struct launch *launch, const char *directory,
                                        const struct engine_answer *answer, bool loads)
{
    static const char *const outcomes[] = {"ok", "skipped", "failed"};
    char *own = NULL;
    if (answer->outcome == ENGINE_LATER)
        return prepare_skipped(reason(BEING_PREPARED));
    event_log("[probe] engine %s %s\n", outcomes[answer->outcome],
              answer->outcome == ENGINE_OK ? answer->text : answer->reason->written);
    const bool named = !probe->name || asprintf(&own, "%s/%s", directory, probe->name) >= 0;
    struct prepare_result result = named ? make_probe(probe, launch, probe->name ? own : directory, answer, loads)
                                         : prepare_failed(reason(HOST_MEMORY));
    if (named)
        free(own);
    return result;
}

struct prepare_result follow_answer(struct kernel_probe *probe, const struct launch *launch, const char *directory,
                                    const struct engine_answer *answer)
{
    const struct prepare_result result =
        read_probe(probe, launch, directory, answer, kernel_probe_launched(probe) == probe);
    atomic_store(&probe->reason, result.reason);
    return result;
}

void ask_for_parts(const struct kernel *kernel, const char *directory, const char *target,
                   struct engine_answer *answers)
{
    struct engine_answer separate[MOST_PROBES];
    size_t n = 0;
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(kernel->fused, part));)
        n++;
    kernel_folder_unlock();
    engine_prepare_parts(directory, target, kernel->name, kernel->block_threads, separate, n);
    kernel_folder_lock();
    n = 0;
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(kernel->fused, part));)
        answers[part - kernel->probes] = separate[n++];
}

/* Loads the fused probe of KERNEL, if it has one. Where it costs the kernel too much, its parts are prepared by
 * themselves, and ANSWERS are about these. */
static void follow_fused(struct kernel *kernel, const struct launch *launch, const char *directory, const char *target,
                         struct engine_answer *answers)
{
    struct kernel_probe *fused = kernel->fused;
    if (!fused)
        return;
    const struct prepare_result result = follow_answer(fused, launch, directory, &answers[kernel->n_probes]);
    const struct reason *reason = result.reason ? NULL : fused_refused(fused, launch);
    if (reason) {
        atomic_store(&fused->reason, reason);
        ask_for_parts(kernel, directory, target, answers);
    }
    prepare_log_fused(kernel);
}

/* The reason to give up the fused probe of KERNEL: the maps of its parts, one after another, are not its own maps.
 * NULL if they are. RESULTS belong to the parts; with a reason, they are set to a failure. */
static const struct reason *parts_disagree(struct kernel *kernel, struct prepare_result *results)
{
    const struct reason *reason = NULL;
    size_t n_maps = 0;
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(kernel->fused, part)); n_maps += part->n_maps)
        reason = reason ? reason : results[part - kernel->probes].reason;
    if (!reason && n_maps != kernel->fused->n_maps)
        reason = reason_with(KERNEL_INFO, "of the fused kernel lacks maps of its probes");
    for (struct kernel_probe *part = NULL; reason && (part = kernel_probe_next(kernel->fused, part));)
        results[part - kernel->probes] = prepare_failed(reason);
    return reason;
}

static void check_parts(struct kernel *kernel, struct prepare_result *results)
{
    if (!kernel->fused || atomic_load(&kernel->fused->reason))
        return;
    const struct reason *reason = parts_disagree(kernel, results);
    for (struct kernel_probe *part = NULL; reason && (part = kernel_probe_next(kernel->fused, part));)
        atomic_store(&part->reason, reason);
    atomic_store(&kernel->fused->reason, reason);
}

void leave_kernel_to_watchdog(struct kernel *kernel, struct prepare_result *results)
{
    bool is_watched = false;
    if (!kernel->fused || !atomic_load(&kernel->fused->reason))
        return;
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(kernel->fused, part));)
        is_watched = is_watched || (part->resident && !results[part - kernel->probes].reason);
    for (struct kernel_probe *part = NULL; is_watched && (part = kernel_probe_next(kernel->fused, part));) {
        struct prepare_result *result = &results[part - kernel->probes];
        if (!part->resident && !result->reason)
            *result = prepare_skipped(reason(WATCHED));
        atomic_store(&part->reason, result->reason);
    }
}

struct prepare_result follow_answers(struct kernel *kernel, const struct launch *launch, const char *directory,
                                     const char *target, struct engine_answer *answers, struct prepare_result *results)
{
    struct prepare_result result = {0};
    follow_fused(kernel, launch, directory, target, answers);
    for (size_t i = 0; i < kernel->n_probes; i++)
        results[i] = follow_answer(&kernel->probes[i], launch, directory, &answers[i]);
    check_parts(kernel, results);
    leave_kernel_to_watchdog(kernel, results);
    for (size_t i = 0; i < kernel->n_probes; i++) {
        if (i == 0 || (result.reason && !results[i].reason))
            result = results[i];
    }
    return result;
}

/* The fused probe of KERNEL is there. Until this is known, no launch has its parts; then launches have all together. */
static void follow_late_fused(struct kernel *kernel, const struct launch *launch, const char *target,
                              struct engine_answer *answers, struct prepare_result *results)
{
    struct kernel_probe *fused = kernel->fused;
    const struct prepare_result result = read_probe(fused, launch, kernel->folder, &answers[kernel->n_probes], true);
    const struct reason *reason = result.reason ? result.reason : fused_refused(fused, launch);
    if (reason && !result.reason)
        ask_for_parts(kernel, kernel->folder, target, answers);
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(fused, part));)
        results[part - kernel->probes] =
            read_probe(part, launch, kernel->folder, &answers[part - kernel->probes], reason != NULL);
    atomic_store(&fused->reason, reason ? reason : parts_disagree(kernel, results));
    prepare_log_fused(kernel);
}

void follow_late_answers(struct kernel *kernel, const struct launch *launch, const bool *is_late,
                         struct engine_answer *answers)
{
    char target[DEVICE_TARGET_SIZE];
    struct prepare_result results[MOST_PROBES] = {0};
    CUdevice device;
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS || !device_target(device, target) || !kernel->folder)
        return;
    const bool is_fused_late = kernel->fused && is_late[kernel->n_probes];
    if (is_fused_late)
        follow_late_fused(kernel, launch, target, answers, results);
    for (size_t i = 0; i < kernel->n_probes; i++) {
        struct kernel_probe *probe = &kernel->probes[i];
        if (!is_late[i])
            results[i].reason = atomic_load(&probe->reason);
        else if (!is_fused_late || !probe->is_part)
            results[i] = read_probe(probe, launch, kernel->folder, &answers[i], true);
    }
    leave_kernel_to_watchdog(kernel, results);
    for (size_t i = 0; i < kernel->n_probes; i++) {
        if (!is_late[i])
            continue;
        atomic_store(&kernel->probes[i].reason, results[i].reason);
        prepare_log_probe(&kernel->probes[i], launch, results[i]);
    }
    prepare_log_function(kernel, launch);
    schedule_renew_kernel(kernel);
}

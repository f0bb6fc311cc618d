#define _GNU_SOURCE
#include "prepare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "engine_client.h"
#include "errand.h"
#include "event_log.h"
#include "fused.h"
#include "image_parts.h"
#include "kernel_folder.h"
#include "kernel_info.h"
#include "parameters.h"
#include "prepare_log.h"
#include "real.h"
#include "reasons.h"
#include "reservations.h"
#include "sandbox.h"
#include "settings.h"
#include "streams.h"
#include "trace_dir.h"
#include "variants.h"

static void read_parameters(struct kernel *kernel, const struct launch *launch)
{
    const CUkernel of_library = launch->instance->library_kernel;
    const bool library = (void *)of_library == (void *)launch->function;
    kernel->parameters_known =
        parameters_read(launch->function, library ? of_library : NULL, &kernel->parameters, &kernel->n_parameters);
    for (size_t i = 0; kernel->parameters_known && i < kernel->n_parameters; i++)
        kernel->parameter_bytes += kernel->parameters[i].size;
    if (!kernel->parameters_known)
        kernel->n_parameters = 0;
}

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

/* Loads what the engine made for one probe, in DIRECTORY. */
static struct prepare_result make_probe(struct kernel_probe *probe, const struct launch *launch, const char *directory,
                                        const struct engine_answer *answer)
{
    CUcontext context = NULL;
    if (answer->outcome == ENGINE_SKIPPED)
        return prepare_skipped(answer->reason);
    if (answer->outcome == ENGINE_FAILED)
        return prepare_failed(answer->reason);
    struct prepare_result result = read_answer(probe, directory, answer);
    if (result.reason || kernel_probe_launched(probe) != probe)
        return result;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) != CUDA_SUCCESS || !context)
        return prepare_failed(reason(NO_CONTEXT));
    const struct reason *reason;
    return variants_get(probe, launch, context, false, &reason) ? result : prepare_failed(reason);
}

/* The files of one probe among several are in a folder of its own. */
static struct prepare_result follow_answer(struct kernel_probe *probe, const struct launch *launch,
                                           const char *directory, const struct engine_answer *answer)
{
    static const char *const outcomes[] = {"ok", "skipped", "failed"};
    char *own = NULL;
    event_log("[probe] engine %s %s\n", outcomes[answer->outcome],
              answer->outcome == ENGINE_OK ? answer->text : answer->reason->written);
    const bool named = !probe->name || asprintf(&own, "%s/%s", directory, probe->name) >= 0;
    struct prepare_result result =
        named ? make_probe(probe, launch, probe->name ? own : directory, answer) : prepare_failed(reason(HOST_MEMORY));
    if (named)
        free(own);
    atomic_store(&probe->reason, result.reason);
    return result;
}

/* Asks for the parts of the kernel's fused probe, which are in ANSWERS, each by itself. */
static void ask_for_parts(const struct kernel *kernel, const char *directory, const char *target,
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

/* Gives up the fused probe of KERNEL if its parts do not have its maps, one after another. RESULTS are those of the
 * probes. */
static void check_parts(struct kernel *kernel, struct prepare_result *results)
{
    const struct reason *reason = NULL;
    struct kernel_probe *fused = kernel->fused;
    size_t n_maps = 0;
    if (!fused || atomic_load(&fused->reason))
        return;
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(fused, part)); n_maps += part->n_maps)
        reason = reason ? reason : atomic_load(&part->reason);
    if (!reason && n_maps != fused->n_maps)
        reason = reason_with(KERNEL_INFO, "of the fused kernel lacks maps of its probes");
    for (struct kernel_probe *part = NULL; reason && (part = kernel_probe_next(fused, part));) {
        atomic_store(&part->reason, reason);
        results[part - kernel->probes] = prepare_failed(reason);
    }
    atomic_store(&fused->reason, reason);
}

/* Prepares each probe of KERNEL, with the lock free while the engine works. Returns the result of the first that is in
 * it, else that of the first. */
static struct prepare_result ask_engine(struct kernel *kernel, const struct launch *launch, const char *directory,
                                        struct prepare_result *results)
{
    char target[DEVICE_TARGET_SIZE];
    CUdevice device;
    const size_t n = kernel->n_probes + (kernel->fused != NULL);
    struct engine_answer *answers = calloc(n, sizeof *answers);
    struct prepare_result result = {0};
    if (!answers)
        return prepare_failed(reason(HOST_MEMORY));
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS || !device_target(device, target)) {
        free(answers);
        return prepare_failed(reason(NO_DEVICE));
    }
    kernel->block_threads = launch->block[0] * launch->block[1] * launch->block[2];
    kernel_folder_unlock();
    engine_prepare(directory, target, kernel->name, kernel->block_threads, answers, n);
    kernel_folder_lock();
    follow_fused(kernel, launch, directory, target, answers);
    for (size_t i = 0; i < kernel->n_probes; i++)
        results[i] = follow_answer(&kernel->probes[i], launch, directory, &answers[i]);
    check_parts(kernel, results);
    for (size_t i = 0; i < kernel->n_probes; i++) {
        if (i == 0 || (result.reason && !results[i].reason))
            result = results[i];
    }
    free(answers);
    return result;
}

static struct prepare_result make_probed(struct kernel *kernel, const struct launch *launch, unsigned kept,
                                         struct prepare_result *results)
{
    struct image *image = launch->instance->code->image;
    const struct reason *reason;
    bool written = false;
    event_log("[probe] find %p name %s bin %p size %zu\n", (void *)launch->function, kernel->name, (void *)image->ptx,
              image_most(image));
    char *directory = trace_dir_kernel(kernel->index, kernel->name);
    if (!directory)
        return prepare_failed(reason_of_file("no directory for the kernel", errno));
    reason = kernel_folder_save(directory, image, kept, &written);
    struct prepare_result result = reason ? prepare_failed(reason) : ask_engine(kernel, launch, directory, results);
    kernel->folder = strdup(directory);
    kernel_folder_count(directory, written);
    if (!result.reason)
        event_log("[probe] finish %p name %s n_param %zu n_probe %zu\n", (void *)launch->function, kernel->name,
                  kernel->n_parameters, kernel->probes[0].n_maps);
    return result;
}

/* RESULTS[i].status is set where probe i came so far as to have one of its own. */
static struct prepare_result decide(struct kernel *kernel, const struct launch *launch, struct prepare_result *results)
{
    const struct image *image = launch->instance->code->image;
    const struct reason *reason = atomic_load(&kernel->reason);
    unsigned kept;
    if (reason)
        return prepare_skipped(reason);
    reason = settings_filter(kernel->name);
    if (reason)
        return (struct prepare_result){"filtered", reason};
    if (settings.under_ncu)
        return prepare_skipped(reason(UNDER_NCU));
    if (sandbox_is_deadly())
        return prepare_skipped(reason(SANDBOX));
    if (!image)
        return prepare_skipped(reason(IMAGE_UNSEEN));
    if (!image->ptx && image->ptx_size)
        return prepare_failed(image->is_too_large ? reason(HOST_LIMIT) : reason(HOST_MEMORY));
    CUdevice device;
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS)
        device = -1;
    reason = image_parts_choose(kernel->name, image, device, &kept);
    return reason ? prepare_skipped(reason) : make_probed(kernel, launch, kept, results);
}

const struct reason *prepare_refused(const struct kernel *kernel, const struct launch *launch)
{
    const struct image *image = launch->instance->code->image;
    const struct reason *reason = budget_refuses_folder(image ? image_most(image) : 0);
    const bool has_folder = reason && image && (image->ptx || !image_parts_code_refused(kernel->name, image)) &&
                            !atomic_load(&kernel->reason);
    if (!has_folder || settings_filter(kernel->name))
        return NULL;
    budget_refused(reason);
    return reason;
}

static enum kernel_status prepare_here(struct kernel *kernel, const struct launch *launch)
{
    kernel_folder_lock();
    kernel_folder_claim(&kernel->in_preparation);
    enum kernel_status status = atomic_load(&kernel->status);
    if (status == KERNEL_NEW) {
        int mode = capture_mode_relax();
        event_log("[exec] funcmap-not-find %p\n", (void *)launch->function);
        trace_dir_note_device();
        read_parameters(kernel, launch);
        struct prepare_result results[MOST_PROBES] = {0};
        struct prepare_result result = decide(kernel, launch, results);
        prepare_log_result(kernel, launch, result);
        for (size_t i = 0; i < kernel->n_probes; i++)
            if (results[i].status && kernel->probes[i].name)
                prepare_log_probe(&kernel->probes[i], launch, results[i]);
        capture_mode_restore(mode);
        status = result.reason ? KERNEL_PASSED : KERNEL_PROBED;
        atomic_store(&kernel->reason, result.reason);
        atomic_store_explicit(&kernel->status, status, memory_order_release);
    }
    kernel_folder_release(&kernel->in_preparation);
    kernel_folder_unlock();
    return status;
}

struct preparation {
    struct kernel *kernel;
    const struct launch *launch;
    enum kernel_status status;
};

static void prepare_errand(void *argument)
{
    struct preparation *preparation = argument;
    preparation->status = prepare_here(preparation->kernel, preparation->launch);
}

enum kernel_status prepare_kernel(struct kernel *kernel, const struct launch *launch)
{
    struct preparation preparation = {.kernel = kernel, .launch = launch};
    errand_run(prepare_errand, &preparation);
    return preparation.status;
}

/* The fused probe turns out not to go into the kernel: its parts take turns from now on. */
static void separate(struct kernel *kernel, const struct launch *launch, const struct reason *reason)
{
    struct engine_answer answers[MOST_PROBES];
    char target[DEVICE_TARGET_SIZE];
    CUdevice device;
    atomic_store(&kernel->fused->reason, reason);
    prepare_log_fused(kernel);
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS || !kernel->folder || !device_target(device, target))
        return;
    ask_for_parts(kernel, kernel->folder, target, answers);
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(kernel->fused, part));)
        prepare_log_probe(part, launch, follow_answer(part, launch, kernel->folder, &answers[part - kernel->probes]));
}

struct refusal {
    struct kernel_probe *probe;
    const struct launch *launch;
    const struct reason *reason;
};

static void separate_errand(void *argument)
{
    const struct refusal *refusal = argument;
    kernel_folder_lock();
    if (!atomic_load(&refusal->probe->reason)) {
        const int mode = capture_mode_relax();
        separate(refusal->probe->kernel, refusal->launch, refusal->reason);
        capture_mode_restore(mode);
    }
    kernel_folder_unlock();
}

void prepare_give_up(struct kernel_probe *probe, const struct launch *launch, const struct reason *reason)
{
    struct kernel *kernel = probe->kernel;
    if (probe == kernel->fused) {
        struct refusal refusal = {probe, launch, reason};
        errand_run(separate_errand, &refusal);
        return;
    }
    kernel_folder_lock();
    if (!atomic_load(&probe->reason) && atomic_load(&kernel->status) == KERNEL_PROBED) {
        atomic_store(&probe->reason, reason);
        if (probe->name)
            prepare_log_probe(probe, launch, prepare_failed(reason));
        if (atomic_load(&prepare_first_usable(kernel)->reason)) {
            atomic_store(&kernel->reason, reason);
            atomic_store_explicit(&kernel->status, KERNEL_PASSED, memory_order_release);
            prepare_log_result(kernel, launch, prepare_failed(reason));
        }
    }
    kernel_folder_unlock();
}

void prepare_reset(void)
{
    kernel_folder_reset();
}

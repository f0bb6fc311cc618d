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
#include "image_parts.h"
#include "kernel_folder.h"
#include "parameters.h"
#include "prepare_log.h"
#include "probe_answers.h"
#include "real.h"
#include "reasons.h"
#include "reservations.h"
#include "sandbox.h"
#include "settings.h"
#include "streams.h"
#include "trace_dir.h"

/* The answers of the engine about all probes of a kernel. Some of them come over CONNECTION later. */
struct late_answers {
    struct connection *connection;
    struct budget_folder folder; /* of the kernel, which grows until then */
    struct engine_answer answers[];
};

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

/* Prepares each probe of KERNEL, with the lock free while the engine works. */
static struct prepare_result ask_engine(struct kernel *kernel, const struct launch *launch, const char *directory,
                                        struct prepare_result *results)
{
    char target[DEVICE_TARGET_SIZE];
    CUdevice device;
    const size_t n = kernel->n_probes + (kernel->fused != NULL);
    struct late_answers *asked = calloc(1, sizeof *asked + n * sizeof *asked->answers);
    if (!asked)
        return prepare_failed(reason(HOST_MEMORY));
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS || !device_target(device, target)) {
        free(asked);
        return prepare_failed(reason(NO_DEVICE));
    }
    kernel->block_threads = launch->block[0] * launch->block[1] * launch->block[2];
    kernel_folder_unlock();
    asked->connection = engine_prepare(directory, target, kernel->name, kernel->block_threads, asked->answers, n);
    kernel_folder_lock();
    const struct prepare_result result = follow_answers(kernel, launch, directory, target, asked->answers, results);
    if (asked->connection)
        kernel->late = asked;
    else
        free(asked);
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
    if (kernel->late)
        kernel->late->folder = kernel_folder_take();
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

static struct late_answers *take_late(struct kernel *kernel)
{
    struct late_answers *late = kernel->late;
    kernel->late = NULL;
    return late;
}

/* Waits for LATE answers with the lock free, and follows them. */
static void wait_for_late(struct kernel *kernel, const struct launch *launch, struct late_answers *late)
{
    const size_t n = kernel->n_probes + (kernel->fused != NULL);
    bool is_late[MOST_PROBES + 1] = {false};
    for (size_t i = 0; i < n; i++)
        is_late[i] = late->answers[i].outcome == ENGINE_LATER;
    kernel_folder_unlock();
    engine_prepare_later(late->connection, late->answers, n);
    kernel_folder_lock();
    const int mode = capture_mode_relax();
    follow_late_answers(kernel, launch, is_late, late->answers);
    capture_mode_restore(mode);
}

struct preparation {
    struct kernel *kernel;
    const struct launch *launch;
    enum kernel_status status;
};

static void early_errand(void *argument)
{
    struct preparation *preparation = argument;
    preparation->status = prepare_here(preparation->kernel, preparation->launch);
}

static void late_errand(void *argument)
{
    const struct preparation *preparation = argument;
    kernel_folder_lock();
    struct late_answers *late = take_late(preparation->kernel);
    if (late) {
        wait_for_late(preparation->kernel, preparation->launch, late);
        kernel_folder_put(late->folder);
        free(late);
    }
    kernel_folder_unlock();
}

static void full_errand(void *argument)
{
    const struct preparation *preparation = argument;
    early_errand(argument);
    if (!atomic_load(&preparation->kernel->late_awaited)) /* else a hook thread waits for them */
        late_errand(argument);
}

bool prepare_early(struct kernel *kernel, const struct launch *launch)
{
    struct preparation preparation = {.kernel = kernel, .launch = launch};
    errand_run(early_errand, &preparation);
    kernel_folder_lock();
    const bool is_any_late = kernel->late != NULL;
    kernel_folder_unlock();
    return is_any_late;
}

void prepare_late(struct kernel *kernel, const struct launch *launch)
{
    struct preparation preparation = {.kernel = kernel, .launch = launch};
    errand_run(late_errand, &preparation);
}

void prepare_leave_late(struct kernel *kernel)
{
    kernel_folder_lock();
    struct late_answers *late = take_late(kernel);
    if (late) {
        engine_leave_later(late->connection);
        kernel_folder_put(late->folder);
        free(late);
    }
    kernel_folder_unlock();
}

enum kernel_status prepare_kernel(struct kernel *kernel, const struct launch *launch)
{
    struct preparation preparation = {.kernel = kernel, .launch = launch};
    errand_run(full_errand, &preparation);
    return preparation.status;
}

/* The fused probe turns out not to go into the kernel: its parts take turns from now on. */
static void separate(struct kernel *kernel, const struct launch *launch, const struct reason *reason)
{
    struct engine_answer answers[MOST_PROBES];
    struct prepare_result results[MOST_PROBES] = {0};
    char target[DEVICE_TARGET_SIZE];
    CUdevice device;
    atomic_store(&kernel->fused->reason, reason);
    prepare_log_fused(kernel);
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS || !kernel->folder || !device_target(device, target))
        return;
    ask_for_parts(kernel, kernel->folder, target, answers);
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(kernel->fused, part));)
        results[part - kernel->probes] = follow_answer(part, launch, kernel->folder, &answers[part - kernel->probes]);
    leave_kernel_to_watchdog(kernel, results);
    for (struct kernel_probe *part = NULL; (part = kernel_probe_next(kernel->fused, part));)
        prepare_log_probe(part, launch, results[part - kernel->probes]);
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

#define _GNU_SOURCE
#include "prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "engine_client.h"
#include "errand.h"
#include "event_log.h"
#include "figures.h"
#include "graft_faults.h"
#include "kernel_info.h"
#include "kernels.h"
#include "own_file.h"
#include "parameters.h"
#include "real.h"
#include "reasons.h"
#include "registry.h"
#include "reservations.h"
#include "sandbox.h"
#include "settings.h"
#include "streams.h"
#include "trace_dir.h"
#include "variants.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct budget_folder last_folder;

void prepare_count_last(void)
{
    if (sandbox_is_deadly() || pthread_mutex_trylock(&mutex) != 0)
        return; /* the end of the program does not wait for the engine */
    budget_count_folder(&last_folder);
    pthread_mutex_unlock(&mutex);
}

/* What became of a kernel; STATUS as the log spells it. */
struct prepare_result {
    const char *status;
    const struct reason *reason; /* NULL: probed */
};

static struct prepare_result skipped(const struct reason *reason)
{
    return (struct prepare_result){"skipped", reason};
}

static struct prepare_result failed(const struct reason *reason)
{
    return (struct prepare_result){"failed", reason};
}

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

static bool write_file(const char *path, const void *bytes, size_t size)
{
    struct own_file file;
    if (!own_file_create(&file, AT_FDCWD, path, 0))
        return false;
    const bool written = own_file_write_all(&file, bytes, size);
    const int error = errno;
    const bool closed = own_file_close(&file);
    if (!written)
        errno = error;
    return written && closed;
}

static const struct reason *write_part(const struct image *image, unsigned kept, const char *path)
{
    struct image_part part;
    const struct reason *reason = image_part_make(image, kept, &part);
    if (!reason && !write_file(path, part.bytes, part.size))
        reason = reason_of_file(path, errno);
    image_part_free(&part);
    return reason;
}

/* An image with many kernels is written once; the other directories link to it. WRITTEN says whether it was now. */
static const struct reason *save_image(struct image *image, unsigned kept, const char *directory, bool *written)
{
    char *path;
    if (asprintf(&path, "%s/original.bin", directory) < 0)
        return reason(HOST_MEMORY);
    *written = !image->saved_path || image->saved != kept || link(image->saved_path, path) != 0;
    const struct reason *reason = *written ? write_part(image, kept, path) : NULL;
    if (reason) {
        free(path);
        return reason;
    }
    event_log("[probe] write %s\n", path);
    if (image->saved_path && image->saved == kept) {
        free(path);
        return NULL;
    }
    free(image->saved_path);
    image->saved_path = path;
    image->saved = kept;
    return NULL;
}

static const struct reason *read_info(struct kernel_probe *probe, const char *directory)
{
    char *path;
    if (asprintf(&path, "%s/kernel.info", directory) < 0)
        return reason(HOST_MEMORY);
    const struct reason *reason = kernel_info_read(path, probe);
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
        return failed(reason_with(ENGINE_FILE, answer->text));
    const struct reason *reason = read_info(probe, directory);
    if (reason)
        return failed(reason);
    if (probe->sampled != (probe->sampling.kind != SAMPLE_ALL))
        return failed(reason(SAMPLE_DISAGREES));
    if (asprintf(&probe->load_path, "%s/%s", directory, answer->text) < 0)
        return failed(reason(HOST_MEMORY));
    return (struct prepare_result){"probed", NULL};
}

/* Loads what the engine made for one probe, in DIRECTORY. */
static struct prepare_result make_probe(struct kernel_probe *probe, const struct launch *launch, const char *directory,
                                        const struct engine_answer *answer)
{
    CUcontext context = NULL;
    if (answer->outcome == ENGINE_SKIPPED)
        return skipped(answer->reason);
    if (answer->outcome == ENGINE_FAILED)
        return failed(answer->reason);
    struct prepare_result result = read_answer(probe, directory, answer);
    if (result.reason)
        return result;
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &context) != CUDA_SUCCESS || !context)
        return failed(reason(NO_CONTEXT));
    const struct reason *reason;
    return variants_get(probe, launch, context, false, &reason) ? result : failed(reason);
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
        named ? make_probe(probe, launch, probe->name ? own : directory, answer) : failed(reason(HOST_MEMORY));
    if (named)
        free(own);
    atomic_store(&probe->reason, result.reason);
    return result;
}

/* What each probe makes of KERNEL; returns the result of the first that is in it, else that of the first. */
static struct prepare_result ask_engine(struct kernel *kernel, const struct launch *launch, const char *directory,
                                        struct prepare_result *results)
{
    char architecture[16];
    CUdevice device;
    struct engine_answer *answers = calloc(kernel->n_probes, sizeof *answers);
    struct prepare_result result = {0};
    if (!answers)
        return failed(reason(HOST_MEMORY));
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS ||
        !device_architecture(device, architecture, sizeof architecture)) {
        free(answers);
        return failed(reason(NO_DEVICE));
    }
    kernel->block_threads = launch->block[0] * launch->block[1] * launch->block[2];
    engine_prepare(directory, architecture, kernel->name, kernel->block_threads, answers, kernel->n_probes);
    for (size_t i = 0; i < kernel->n_probes; i++) {
        results[i] = follow_answer(&kernel->probes[i], launch, directory, &answers[i]);
        if (i == 0 || (result.reason && !results[i].reason))
            result = results[i];
    }
    free(answers);
    return result;
}

/* Counts what is in a kernel's folder, which this takes. The engine goes on writing there for a moment: the folder
 * before this one is looked at again. */
static void count_folder(char *directory, bool has_image)
{
    budget_count_folder(&last_folder);
    free(last_folder.path);
    last_folder = (struct budget_folder){.path = directory, .has_image = has_image};
    budget_count_folder(&last_folder);
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
        return failed(reason_of_file("no directory for the kernel", errno));
    reason = save_image(image, kept, directory, &written);
    struct prepare_result result = reason ? failed(reason) : ask_engine(kernel, launch, directory, results);
    kernel->folder = strdup(directory);
    count_folder(directory, written);
    if (!result.reason)
        event_log("[probe] finish %p name %s n_param %zu n_probe %zu\n", (void *)launch->function, kernel->name,
                  kernel->n_parameters, kernel->probes[0].n_maps);
    return result;
}

/* Why the machine code of a kernel is left alone; NULL: it is not. */
static const struct reason *code_refused(const struct kernel *kernel, const struct image *image)
{
    const struct machine_code *code = image->code;
    if (!code)
        return reason(NO_PTX);
    const char *closed = code->closed ? code->closed : machine_code_closed_name(kernel->name);
    if (closed && settings.machine_code != MACHINE_CODE_ALL)
        return reason_with(CLOSED_LIBRARY, closed);
    return code->lost ? code->lost : graft_faults_refuse(kernel->name);
}

/* What of its image is written for KERNEL, as FATBIN_PTX and a compute capability. PTX wins where the device can run
 * it. Returns why it is nothing, or NULL. */
static const struct reason *choose_part(const struct kernel *kernel, const struct image *image, unsigned *kept)
{
    CUdevice device;
    const unsigned capability =
        REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) == CUDA_SUCCESS ? device_capability(device) : 0;
    const enum fatbin_ptx ptx = image_ptx_for(image, capability);
    *kept = image->ptx ? FATBIN_PTX : 0;
    if (ptx == FATBIN_PTX_RUNS || !capability)
        return image->ptx ? NULL : reason(NO_PTX);
    const struct reason *reason = code_refused(kernel, image);
    if (!reason)
        *kept |= capability;
    if (ptx == FATBIN_PTX_MAY_RUN || (ptx == FATBIN_PTX_NEWER && reason && reason->code == REASON_NO_PTX))
        return NULL; /* the engine tells which devices the PTX is for */
    return reason;
}

/* FATES[i].status is set where probe i came so far as to have one of its own. */
static struct prepare_result decide(struct kernel *kernel, const struct launch *launch, struct prepare_result *results)
{
    const struct image *image = launch->instance->code->image;
    const struct reason *reason = atomic_load(&kernel->reason);
    unsigned kept;
    if (reason)
        return skipped(reason);
    reason = settings_filter(kernel->name);
    if (reason)
        return (struct prepare_result){"filtered", reason};
    if (settings.under_ncu)
        return skipped(reason(UNDER_NCU));
    if (sandbox_is_deadly())
        return skipped(reason(SANDBOX));
    if (!image)
        return skipped(reason(IMAGE_UNSEEN));
    if (!image->ptx && image->ptx_size)
        return failed(image->is_too_large ? reason(HOST_LIMIT) : reason(HOST_MEMORY));
    reason = choose_part(kernel, image, &kept);
    return reason ? skipped(reason) : make_probed(kernel, launch, kept, results);
}

/* The first probe that the kernel can have, else the first. */
static const struct kernel_probe *first_usable(const struct kernel *kernel)
{
    for (size_t i = 0; i < kernel->n_probes; i++)
        if (!atomic_load(&kernel->probes[i].reason))
            return &kernel->probes[i];
    return &kernel->probes[0];
}

/* What became of one probe among several in its kernel. */
static void log_probe(const struct kernel_probe *probe, const struct launch *launch, struct prepare_result result)
{
    char figures[FIGURES_SIZE];
    const struct variant *variant = result.reason ? NULL : variants_newest(launch->instance, probe);
    const struct reason *told = result.reason ? result.reason : probe->note;
    figures_of(variant ? variant->function : NULL, launch, figures);
    event_log("[probing] %u %s %s probe %s reason %s\n", probe->kernel->index, result.status, figures, probe->name,
              told ? told->written : "-");
}

const struct reason *prepare_refused(const struct kernel *kernel, const struct launch *launch)
{
    const struct image *image = launch->instance->code->image;
    const struct reason *reason = budget_refuses_folder(image ? image_most(image) : 0);
    const bool has_folder =
        reason && image && (image->ptx || !code_refused(kernel, image)) && !atomic_load(&kernel->reason);
    if (!has_folder || settings_filter(kernel->name))
        return NULL;
    budget_refused(reason);
    return reason;
}

/* The kernel's registers, memory and occupancy belong to the result, PTX or not. */
static void log_result(const struct kernel *kernel, const struct launch *launch, struct prepare_result result)
{
    const struct kernel_probe *probe = first_usable(kernel);
    char figures[FIGURES_SIZE];
    figures_of(registry_function(launch->instance, launch->function), launch, figures);
    const struct reason *told = result.reason ? result.reason : probe->note;
    event_log("[kernel] %u %s %s name %s reason %s\n", kernel->index, result.status, figures, kernel->name,
              told ? told->written : "-");
    if (!result.reason) {
        const struct variant *variant = variants_newest(launch->instance, probe);
        figures_of(variant->function, launch, figures);
        event_log("[kernel] %u probed-function %s way %s\n", kernel->index, figures, way_name(probe->way));
    }
    event_log("[exec] funcmap-find %p %s\n", (void *)launch->function, result.reason ? "fail" : "success");
}

static enum kernel_status prepare_here(struct kernel *kernel, const struct launch *launch)
{
    pthread_mutex_lock(&mutex);
    enum kernel_status status = atomic_load(&kernel->status);
    if (status == KERNEL_NEW) {
        int mode = capture_mode_relax();
        event_log("[exec] funcmap-not-find %p\n", (void *)launch->function);
        trace_dir_note_device();
        read_parameters(kernel, launch);
        struct prepare_result results[MOST_PROBES] = {0};
        struct prepare_result result = decide(kernel, launch, results);
        log_result(kernel, launch, result);
        for (size_t i = 0; i < kernel->n_probes; i++)
            if (results[i].status && kernel->probes[i].name)
                log_probe(&kernel->probes[i], launch, results[i]);
        capture_mode_restore(mode);
        status = result.reason ? KERNEL_PASSED : KERNEL_PROBED;
        atomic_store(&kernel->reason, result.reason);
        atomic_store_explicit(&kernel->status, status, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

/* What is to be prepared: the kernel for a launch, or the sampled form of a probe. */
struct preparation {
    struct kernel *kernel;
    const struct launch *launch;
    struct kernel_probe *form;
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

/* The engine makes its files in a folder of the probe's. */
static char *sampled_folder(const struct kernel_probe *probe)
{
    const char *name = probe->name ? probe->name : "", *slash = *name ? "/" : "";
    char *path = NULL;
    if (!probe->kernel->folder || asprintf(&path, "%s/%s%ssampled", probe->kernel->folder, name, slash) < 0)
        return NULL;
    return path;
}

static const struct reason *read_sampled(struct kernel_probe *probe, const char *folder,
                                         const struct engine_answer *answer)
{
    char *info = NULL;
    if (answer->outcome != ENGINE_OK)
        return answer->reason;
    if (!*answer->text || strchr(answer->text, '/'))
        return reason_with(ENGINE_FILE, answer->text);
    if (asprintf(&probe->sampled_form.load_path, "%s/%s", folder, answer->text) < 0 ||
        asprintf(&info, "%s/kernel.info", folder) < 0)
        return reason(HOST_MEMORY);
    const struct reason *reason = kernel_info_agrees(info, probe);
    free(info);
    return reason;
}

static const struct reason *make_sampled(struct kernel_probe *probe)
{
    const struct kernel *kernel = probe->kernel;
    char architecture[16], *folder = sampled_folder(probe);
    struct engine_answer answer;
    CUdevice device;
    if (!folder)
        return reason(HOST_MEMORY);
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS ||
        !device_architecture(device, architecture, sizeof architecture)) {
        free(folder);
        return reason(NO_DEVICE);
    }
    count_folder(NULL, false); /* without this one, which is counted by itself */
    engine_prepare_sampled(kernel->folder, architecture, kernel->name, kernel->block_threads,
                           (size_t)(probe - kernel->probes), &answer);
    const struct reason *reason = read_sampled(probe, folder, &answer);
    count_folder(folder, false);
    return reason;
}

static void prepare_form_errand(void *argument)
{
    struct kernel_probe *probe = ((struct preparation *)argument)->form;
    struct sampled_form *form = &probe->sampled_form;
    pthread_mutex_lock(&mutex);
    if (!atomic_load(&form->ready) && !budget_refuses_folder(0)) {
        int mode = capture_mode_relax();
        const struct reason *reason = make_sampled(probe);
        capture_mode_restore(mode);
        event_log("[probe] sampled kernel %u probe %s reason %s\n", probe->kernel->index,
                  probe->name ? probe->name : "-", reason ? reason->written : "-");
        atomic_store(&form->reason, reason);
        atomic_store_explicit(&form->ready, true, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
}

void prepare_sampled_form(struct kernel_probe *probe)
{
    errand_run(prepare_form_errand, &(struct preparation){.form = probe});
}

void prepare_give_up_sampled(struct kernel_probe *probe, const struct reason *reason)
{
    if (!atomic_exchange(&probe->sampled_form.reason, reason))
        event_log("[probe] sampled kernel %u probe %s reason %s\n", probe->kernel->index,
                  probe->name ? probe->name : "-", reason->written);
}

void prepare_give_up(struct kernel_probe *probe, const struct launch *launch, const struct reason *reason)
{
    struct kernel *kernel = probe->kernel;
    pthread_mutex_lock(&mutex);
    if (!atomic_load(&probe->reason) && atomic_load(&kernel->status) == KERNEL_PROBED) {
        atomic_store(&probe->reason, reason);
        if (probe->name)
            log_probe(probe, launch, failed(reason));
        if (atomic_load(&first_usable(kernel)->reason)) {
            atomic_store(&kernel->reason, reason);
            atomic_store_explicit(&kernel->status, KERNEL_PASSED, memory_order_release);
            log_result(kernel, launch, failed(reason));
        }
    }
    pthread_mutex_unlock(&mutex);
}

static const struct reason *unprepared_reason(const struct kernel *kernel)
{
    const struct reason *reason = atomic_load(&kernel->unprepared);
    return reason ? reason : reason(CAPTURING);
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

void prepare_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    last_folder = (struct budget_folder){0};
}

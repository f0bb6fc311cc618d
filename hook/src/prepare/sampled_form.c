#define _GNU_SOURCE
#include "sampled_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "engine_client.h"
#include "errand.h"
#include "event_log.h"
#include "kernel_folder.h"
#include "kernel_info.h"
#include "real.h"
#include "reservations.h"
#include "streams.h"

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
    const struct reason *reason = kernel_info_agrees(info, probe, true);
    free(info);
    return reason;
}

static const struct reason *make_sampled(struct kernel_probe *probe)
{
    const struct kernel *kernel = probe->kernel;
    char target[DEVICE_TARGET_SIZE], *folder = sampled_folder(probe);
    struct engine_answer answer;
    CUdevice device;
    if (!folder)
        return reason(HOST_MEMORY);
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) != CUDA_SUCCESS || !device_target(device, target)) {
        free(folder);
        return reason(NO_DEVICE);
    }
    kernel_folder_count(NULL, false); /* without this one, which is counted by itself */
    kernel_folder_unlock();
    engine_prepare_sampled(kernel->folder, target, kernel->name, kernel->block_threads,
                           (size_t)(probe - kernel->probes), &answer);
    kernel_folder_lock();
    const struct reason *reason = read_sampled(probe, folder, &answer);
    kernel_folder_count(folder, false);
    return reason;
}

static void prepare_form_errand(void *argument)
{
    struct kernel_probe *probe = argument;
    struct sampled_form *form = &probe->sampled_form;
    kernel_folder_lock();
    kernel_folder_claim(&form->in_preparation);
    if (!atomic_load(&form->ready) && !budget_refuses_folder(0)) {
        int mode = capture_mode_relax();
        const struct reason *reason = make_sampled(probe);
        capture_mode_restore(mode);
        event_log("[probe] sampled kernel %u probe %s reason %s\n", probe->kernel->index,
                  probe->name ? probe->name : "-", reason ? reason->written : "-");
        atomic_store(&form->reason, reason);
        atomic_store_explicit(&form->ready, true, memory_order_release);
    }
    kernel_folder_release(&form->in_preparation);
    kernel_folder_unlock();
}

void sampled_form_prepare(struct kernel_probe *probe)
{
    errand_run(prepare_form_errand, probe);
}

void sampled_form_give_up(struct kernel_probe *probe, const struct reason *reason)
{
    if (!atomic_exchange(&probe->sampled_form.reason, reason))
        event_log("[probe] sampled kernel %u probe %s reason %s\n", probe->kernel->index,
                  probe->name ? probe->name : "-", reason->written);
}

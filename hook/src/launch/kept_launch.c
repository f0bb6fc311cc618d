#define _GNU_SOURCE
#include "kept_launch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"
#include "event_log.h"
#include "kept_description.h"
#include "kept_files.h"
#include "real.h"
#include "reasons.h"
#include "registry.h"
#include "sandbox.h"
#include "settings.h"
#include "shared_variables.h"
#include "streams.h"

/* Parameters may be packed in structures; addresses in memory are aligned. */
enum { PARAMETER_STEP = 4 };

/* A variable of the kernel's module. */
struct variable {
    const char *name;
    CUdeviceptr memory;
    size_t size;
};

struct kept {
    const struct launch *launch;
    struct kernel *kernel;
    CUstream stream;
    CUfunction function;
    struct kept_folder folder;
    struct packed_parameters parameters;
    struct reach reach;
    bool variables_known;
    struct variable *variables;
    size_t n_variables;
    uint64_t variable_bytes;
    bool saved;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool taken[MOST_KEPT];
static uint64_t saved_bytes; /* by all of the process */

bool kept_launch_take(const struct launch *launch, const struct kernel *kernel)
{
    for (size_t i = 0; i < settings.n_kept; i++) {
        const struct kept_choice *choice = &settings.kept[i];
        if (launch->number >= choice->launch && !atomic_load_explicit(&taken[i], memory_order_relaxed) &&
            strstr(kernel->name, choice->kernel) && !atomic_exchange(&taken[i], true))
            return true;
    }
    return false;
}

static const struct reason *add_variable(struct kept *copy, const char *name)
{
    struct variable *variable = &copy->variables[copy->n_variables];
    for (size_t i = 0; i < copy->n_variables; i++)
        if (strcmp(copy->variables[i].name, name) == 0)
            return NULL;
    const struct reason *reason =
        shared_variable(copy->launch->instance->code, name, &variable->memory, &variable->size);
    if (reason)
        return reason;
    variable->name = name;
    copy->variable_bytes += variable->size;
    copy->n_variables++;
    return NULL;
}

/* Those that the kernel uses, which the engine lists where a probe could be put into the kernel. */
static const struct reason *find_variables(struct kept *copy)
{
    const struct kernel_probe *probe = NULL;
    const bool prepared = atomic_load(&copy->kernel->status) == KERNEL_PROBED;
    const struct reason *reason = NULL;
    for (size_t i = 0; i < copy->kernel->n_probes && prepared && !probe; i++)
        if (!atomic_load(&copy->kernel->probes[i].reason))
            probe = &copy->kernel->probes[i];
    if (!probe)
        return NULL;
    copy->variables_known = true;
    copy->variables = calloc(probe->n_globals + probe->n_constants + probe->n_patches + 1, sizeof *copy->variables);
    if (!copy->variables)
        return reason(HOST_MEMORY);
    for (size_t i = 0; i < probe->n_globals && !reason; i++)
        reason = add_variable(copy, probe->globals[i]);
    for (size_t i = 0; i < probe->n_constants && !reason; i++)
        reason = add_variable(copy, probe->constants[i].variable);
    for (size_t i = 0; i < probe->n_patches && !reason; i++)
        reason = add_variable(copy, probe->patches[i].variable);
    return reason;
}

/* The reason why what was found so far cannot be saved twice, or NULL. SIZE bytes are about to be written. */
static const struct reason *check_room(const struct kept *copy, uint64_t size)
{
    char needed[REASON_NUMBER_SIZE], budget[REASON_NUMBER_SIZE];
    const uint64_t bytes = saved_bytes + 2 * (copy->variable_bytes + copy->reach.bytes);
    if (bytes > settings.max_kept_bytes)
        return reason_with(KEPT_TOO_LARGE, reason_number(needed, bytes),
                           reason_budget(budget, settings.max_kept_bytes));
    return disk_has_room(2 * size) ? NULL : disk_reason();
}

/* Appends all memory to NAME. While it is saved before the launch, more is found. */
static const struct reason *write_memory(struct kept *copy, const char *name, struct reach *found)
{
    struct own_file file;
    const struct reason *reason = kept_file_create(&copy->folder, name, &file);
    for (size_t i = 0; i < copy->n_variables && !reason; i++)
        reason = kept_memory_write(&file, copy->variables[i].memory, copy->variables[i].size, copy->stream, found);
    for (size_t i = 0; i < copy->reach.n && !reason; i++) {
        const struct reached *reached = reach_get(&copy->reach, i);
        if (found)
            reason = check_room(copy, reached->size);
        if (!reason)
            reason = kept_memory_write(&file, reached->memory, reached->size, copy->stream, found);
    }
    if (!own_file_close(&file) && !reason)
        reason = reason_of_file(name, errno);
    return reason;
}

static const struct reason *write_description(const struct kept *copy)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&bytes, &size);
    if (!text)
        return reason(HOST_MEMORY);
    kept_describe_launch(text, copy->launch, copy->kernel, copy->function, &copy->parameters);
    if (!copy->variables_known)
        fputs("variables-unknown\n", text);
    for (size_t i = 0; i < copy->n_variables; i++)
        kept_describe_variable(text, copy->variables[i].name, copy->variables[i].size);
    kept_describe_memory(text, &copy->reach);
    const struct reason *reason =
        fclose(text) == 0 ? kept_file_write(&copy->folder, "launch.info", bytes, size) : reason(HOST_MEMORY);
    free(bytes);
    return reason;
}

/* The reason why nothing is to be saved, or NULL. Waits until all kernels have ended. */
static const struct reason *begin(struct kept *copy)
{
    if (sandbox_is_deadly())
        return reason(SANDBOX);
    if (streams_any_capture()) /* which waiting for the whole context would end */
        return reason(CAPTURE_ELSEWHERE);
    const CUresult result = REAL_OR_NOT_FOUND(cuCtxSynchronize);
    if (result != CUDA_SUCCESS)
        return reason_of_driver(result);
    copy->function = registry_function(copy->launch->instance, copy->launch->function);
    const struct reason *reason = kept_parameters(copy->launch, copy->function, &copy->parameters);
    return reason ? reason : find_variables(copy);
}

/* The list of allocations is locked. */
static const struct reason *save_before(struct kept *copy, const struct allocation *allocations)
{
    if (!reach_begin(&copy->reach, allocations))
        return reason(HOST_MEMORY);
    reach_scan(&copy->reach, copy->parameters.bytes, copy->parameters.size, PARAMETER_STEP);
    const struct reason *reason = check_room(copy, copy->variable_bytes);
    if (!reason)
        reason = kept_folder_create(&copy->folder, copy->kernel->index, copy->launch->number);
    if (reason)
        return reason;
    reason = kept_image_write(&copy->folder, copy->launch->instance->code->image);
    if (!reason)
        reason = write_memory(copy, "before.bin", &copy->reach);
    if (!reason)
        reason = write_description(copy);
    if (reason)
        kept_folder_remove(&copy->folder);
    return reason;
}

/* A kernel that fails leaves no result, but it can be launched again. */
static const struct reason *save_after(struct kept *copy, CUresult launched)
{
    CUresult result = launched;
    if (result == CUDA_SUCCESS)
        result = REAL_OR_NOT_FOUND(cuCtxSynchronize);
    const struct reason *reason =
        result == CUDA_SUCCESS ? write_memory(copy, "after.bin", NULL) : reason_of_driver(result);
    copy->saved = !reason || (launched == CUDA_SUCCESS && result != CUDA_SUCCESS);
    if (copy->saved)
        saved_bytes += 2 * (copy->variable_bytes + copy->reach.bytes);
    else
        kept_folder_remove(&copy->folder);
    return reason;
}

static void log_outcome(const struct kept *copy, const struct reason *reason)
{
    const unsigned long long number = copy->launch->number;
    if (!copy->saved)
        event_log("[probe] not-kept kernel %u launch %llu reason %s\n", copy->kernel->index, number, reason->written);
    else
        event_log("[probe] kept kernel %u launch %llu bytes %llu regions %zu unknown %llu%s%s\n", copy->kernel->index,
                  number, (unsigned long long)(copy->variable_bytes + copy->reach.bytes),
                  copy->n_variables + copy->reach.n, (unsigned long long)copy->reach.n_unknown,
                  reason ? " reason " : "", reason ? reason->written : "");
}

static void end(struct kept *copy)
{
    reach_end(&copy->reach);
    free(copy->parameters.bytes);
    free(copy->variables);
}

/* Nothing is freed between the two times that memory is saved. True if it was launched. */
static bool save_and_launch(struct kept *copy, const struct reason **reason, CUresult *result)
{
    *reason = save_before(copy, allocations_lock());
    const bool launches = !*reason;
    if (launches) {
        *result = launch_pass(copy->launch, reason(KEPT_LAUNCH));
        *reason = save_after(copy, *result);
    }
    allocations_unlock();
    return launches;
}

bool kept_launch(const struct launch *launch, struct kernel *kernel, CUresult *result)
{
    struct kept copy = {.launch = launch, .kernel = kernel, .stream = launch_stream(launch)};
    pthread_mutex_lock(&mutex);
    const int mode = capture_mode_relax();
    const struct reason *reason = begin(&copy);
    const bool launched = !reason && save_and_launch(&copy, &reason, result);
    log_outcome(&copy, reason);
    end(&copy);
    capture_mode_restore(mode);
    pthread_mutex_unlock(&mutex);
    return launched;
}

void kept_launch_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    saved_bytes = 0;
}

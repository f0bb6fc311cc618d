#include "variants.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "buffers.h"
#include "errand.h"
#include "event_log.h"
#include "parameters.h"
#include "real.h"
#include "reasons.h"
#include "registry.h"
#include "residency.h"
#include "settings.h"
#include "shared_variables.h"
#include "streams.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The list of the variants of PROBE for INSTANCE. */
static _Atomic(struct variant *) *list_of(struct instance *instance, const struct kernel_probe *probe)
{
    return &instance->variants[probe - probe->kernel->probes];
}

const struct variant *variants_newest(const struct instance *instance, const struct kernel_probe *probe)
{
    return atomic_load(&instance->variants[probe - probe->kernel->probes]);
}

static struct variant *find(_Atomic(struct variant *) *list, CUcontext context, bool sampled)
{
    struct variant *variant = atomic_load_explicit(list, memory_order_acquire);
    while (variant &&
           (atomic_load_explicit(&variant->context, memory_order_relaxed) != context || variant->sampled != sampled))
        variant = variant->next;
    return variant;
}

/* Limits and preferences that the program, or a library before it, has given the original. */
static void copy_attributes(CUfunction original, CUfunction probed)
{
    static const int attributes[] = {8, 9, 11, 12, 13, 14, 15};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        int wanted, present;
        if (REAL_OR_NOT_FOUND(cuFuncGetAttribute, &wanted, attributes[i], original) == CUDA_SUCCESS &&
            REAL_OR_NOT_FOUND(cuFuncGetAttribute, &present, attributes[i], probed) == CUDA_SUCCESS && wanted != present)
            REAL_OR_NOT_FOUND(cuFuncSetAttribute, probed, attributes[i], wanted);
    }
}

/* The registers of a probed kernel may leave room for fewer threads per block. */
static uint32_t fewer_threads(CUfunction original, CUfunction probed)
{
    int before, after;
    const int which = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    if (REAL_OR_NOT_FOUND(cuFuncGetAttribute, &before, which, original) != CUDA_SUCCESS ||
        REAL_OR_NOT_FOUND(cuFuncGetAttribute, &after, which, probed) != CUDA_SUCCESS)
        return 0;
    return 0 < after && after < before ? (uint32_t)after : 0;
}

static const struct reason *find_globals(const struct kernel_probe *probe, const struct code *code,
                                         struct variant *variant)
{
    variant->globals = calloc(probe->n_globals + 1, sizeof *variant->globals);
    variant->global_sizes = calloc(probe->n_globals + 1, sizeof *variant->global_sizes);
    if (!variant->globals || !variant->global_sizes)
        return reason(HOST_MEMORY);
    for (size_t i = 0; i < probe->n_globals; i++) {
        const struct reason *reason =
            shared_variable(code, probe->globals[i], &variant->globals[i], &variant->global_sizes[i]);
        if (reason)
            return reason;
    }
    return NULL;
}

/* A whole file, with a 0 behind it. */
static uint8_t *read_file(const char *path, size_t *length)
{
    uint8_t *bytes = NULL;
    FILE *file = fopen(path, "rbe");
    long size = -1;
    if (file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && (bytes = calloc(1, (size_t)size + 1))) {
        rewind(file);
        if (fread(bytes, 1, (size_t)size, file) != (size_t)size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file)
        fclose(file);
    *length = bytes ? (size_t)size : 0;
    return bytes;
}

static const struct reason *load_module(const struct kernel_probe *probe, const struct code *code,
                                        struct variant *variant)
{
    const char *path = variant->sampled ? probe->sampled_form.load_path : probe->load_path;
    size_t size;
    uint8_t *image = read_file(path, &size);
    if (!image)
        return reason_with(PROBED_UNREADABLE, path);
    const struct reason *reason = shared_patch(probe, code, image, size);
    if (reason) {
        free(image);
        return reason;
    }
    CUresult result = REAL_OR_NOT_FOUND(cuModuleLoadData, &variant->module, image);
    free(image);
    if (result != CUDA_SUCCESS) {
        variant->module = NULL;
        return reason_with(DRIVER_REFUSED, path, reason_error_name(result));
    }
    result = REAL_OR_NOT_FOUND(cuModuleGetFunction, &variant->function, variant->module, probe->kernel->name);
    return result == CUDA_SUCCESS ? NULL : reason_with(KERNEL_MISSING, reason_error_name(result));
}

static const struct reason *load(const struct kernel_probe *probe, const struct launch *launch, struct variant *variant)
{
    const struct code *code = launch->instance->code;
    const struct reason *reason = load_module(probe, code, variant);
    if (!reason)
        reason = parameters_agree(probe, variant);
    if (!reason)
        reason = find_globals(probe, code, variant);
    if (!reason)
        reason = shared_find_constants(probe, code, variant);
    if (reason) {
        variant->function = NULL;
        return reason;
    }
    CUfunction original = registry_function(launch->instance, launch->function);
    if (original) {
        copy_attributes(original, variant->function);
        variant->most_threads = fewer_threads(original, variant->function);
    }
    return NULL;
}

static struct variant *make(struct kernel_probe *probe, const struct launch *launch, CUcontext context, bool sampled)
{
    struct variant *variant = calloc(1, sizeof *variant);
    if (!variant)
        return NULL;
    atomic_init(&variant->context, context);
    variant->sampled = sampled;
    CUresult result = REAL_OR_NOT_FOUND(cuCtxGetDevice, &variant->device);
    int mode = capture_mode_relax();
    if (result == CUDA_SUCCESS)
        variant->reason = load(probe, launch, variant);
    else
        variant->reason = reason_of_driver(result);
    if (!variant->reason && !(variant->pool = buffers_pool(context)))
        variant->reason = reason(NO_STREAM);
    capture_mode_restore(mode);
    _Atomic(struct variant *) *list = list_of(launch->instance, probe);
    variant->next = atomic_load_explicit(list, memory_order_relaxed);
    atomic_store_explicit(list, variant, memory_order_release);
    return variant;
}

/* The request for a variant, and then the result. */
struct wanted {
    struct kernel_probe *probe;
    const struct launch *launch;
    CUcontext context;
    bool sampled;
    struct variant *variant;
};

static void make_wanted(void *argument)
{
    struct wanted *wanted = argument;
    pthread_mutex_lock(&mutex);
    wanted->variant = find(list_of(wanted->launch->instance, wanted->probe), wanted->context, wanted->sampled);
    if (!wanted->variant)
        wanted->variant = make(wanted->probe, wanted->launch, wanted->context, wanted->sampled);
    pthread_mutex_unlock(&mutex);
}

struct variant *variants_get(struct kernel_probe *probe, const struct launch *launch, CUcontext context, bool sampled,
                             const struct reason **reason)
{
    _Atomic(struct variant *) *list = list_of(launch->instance, probe);
    struct variant *variant = find(list, context, sampled);
    if (!variant) {
        struct wanted wanted = {probe, launch, context, sampled, NULL};
        errand_run(make_wanted, &wanted);
        variant = wanted.variant;
    }
    *reason = variant ? variant->reason : reason(HOST_MEMORY);
    return *reason ? NULL : variant;
}

static void each_variant(struct instance *instance, void (*visit)(struct variant *variant, const void *argument),
                         const void *argument)
{
    for (size_t i = 0; instance && i < settings.n_probes + settings.fuses; i++)
        for (struct variant *v = atomic_load(&instance->variants[i]); v; v = v->next)
            visit(v, argument);
}

static void unload(struct variant *variant, const void *unused)
{
    (void)unused;
    CUcontext context = atomic_exchange(&variant->context, NULL);
    if (context && variant->module && REAL_OR_NOT_FOUND(cuCtxSetCurrent, context) == CUDA_SUCCESS)
        REAL_OR_NOT_FOUND(cuModuleUnload, variant->module);
}

void variants_unload(struct code *code)
{
    CUcontext before = NULL;
    /* what is not known cannot be put back: then the modules stay */
    if (REAL_OR_NOT_FOUND(cuCtxGetCurrent, &before) != CUDA_SUCCESS)
        return;
    int mode = capture_mode_relax();
    pthread_mutex_lock(&mutex);
    for (struct instance *instance = code->instances; instance; instance = instance->next)
        each_variant(instance, unload, NULL);
    pthread_mutex_unlock(&mutex);
    REAL_OR_NOT_FOUND(cuCtxSetCurrent, before);
    capture_mode_restore(mode);
}

static void free_variants(struct variant *variant)
{
    while (variant) {
        struct variant *next = variant->next;
        residency_free(atomic_load(&variant->residency));
        free(variant->globals);
        free(variant->global_sizes);
        free(variant->constants);
        free(variant);
        variant = next;
    }
}

void variants_free(struct code *code)
{
    for (struct instance *instance = code->instances; instance; instance = instance->next)
        for (size_t i = 0; i < settings.n_probes + settings.fuses; i++)
            free_variants(atomic_exchange(&instance->variants[i], NULL));
}

static void leave_variant(struct variant *variant, const void *context)
{
    CUcontext present = (CUcontext)(uintptr_t)context;
    if (atomic_compare_exchange_strong(&variant->context, &present, NULL))
        variant->left = present;
}

static void leave(struct instance *instance, void *context)
{
    each_variant(instance, leave_variant, context);
}

void variants_leave(CUcontext context)
{
    pthread_mutex_lock(&mutex);
    registry_each(leave, context);
    pthread_mutex_unlock(&mutex);
}

static void lose_variant(struct variant *variant, const void *context)
{
    if (variant->left == context)
        variant->left = NULL;
}

static void keep_variant(struct variant *variant, const void *context)
{
    if (variant->left != context)
        return;
    variant->left = NULL;
    atomic_store(&variant->context, (CUcontext)(uintptr_t)context);
}

static void lose(struct instance *instance, void *context)
{
    each_variant(instance, lose_variant, context);
}

static void keep(struct instance *instance, void *context)
{
    each_variant(instance, keep_variant, context);
}

void variants_settle(CUcontext context, bool gone)
{
    pthread_mutex_lock(&mutex);
    registry_each(gone ? lose : keep, context);
    pthread_mutex_unlock(&mutex);
}

/* Settings of the program on functions of a device, or of all (-1). */
struct setting {
    int attribute, value;
    CUdevice device;
};

static bool concerns(const struct setting *setting, const struct variant *variant)
{
    return variant->function && atomic_load(&variant->context) &&
           (setting->device < 0 || setting->device == variant->device);
}

static void set_attribute(struct variant *variant, const void *argument)
{
    const struct setting *setting = argument;
    if (concerns(setting, variant))
        REAL_OR_NOT_FOUND(cuFuncSetAttribute, variant->function, setting->attribute, setting->value);
    atomic_fetch_add(&variant->changes, 1);
}

static void set_cache(struct variant *variant, const void *argument)
{
    const struct setting *setting = argument;
    if (concerns(setting, variant))
        REAL_OR_NOT_FOUND(cuFuncSetCacheConfig, variant->function, setting->value);
    atomic_fetch_add(&variant->changes, 1);
}

void variants_set_attribute(const void *handle, int attribute, int value, CUdevice device)
{
    const struct setting setting = {attribute, value, device};
    each_variant(registry_find(handle), set_attribute, &setting);
}

void variants_set_cache(const void *handle, int config, CUdevice device)
{
    const struct setting setting = {.value = config, .device = device};
    each_variant(registry_find(handle), set_cache, &setting);
}

void variants_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
}

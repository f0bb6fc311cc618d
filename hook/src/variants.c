#include "variants.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "buffers.h"
#include "event_log.h"
#include "lifetime.h"
#include "real.h"
#include "reasons.h"
#include "registry.h"
#include "streams.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct variant *find(const struct kernel *kernel, CUcontext context)
{
    struct variant *variant = atomic_load_explicit(&kernel->variants, memory_order_acquire);
    while (variant && atomic_load_explicit(&variant->context, memory_order_relaxed) != context)
        variant = variant->next;
    return variant;
}

CUfunction variants_original(const struct kernel *kernel, CUfunction launched)
{
    CUfunction function = launched;
    if ((void *)launched == (void *)kernel->library_kernel &&
        REAL_OR_NOT_FOUND(cuKernelGetFunction, &function, kernel->library_kernel) != CUDA_SUCCESS)
        return NULL;
    return function;
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

static const struct reason *find_globals(const struct kernel *kernel, struct variant *variant)
{
    const struct code *code = kernel->code;
    variant->globals = calloc(kernel->n_globals + 1, sizeof *variant->globals);
    variant->global_sizes = calloc(kernel->n_globals + 1, sizeof *variant->global_sizes);
    if (!variant->globals || !variant->global_sizes)
        return reason(HOST_MEMORY);
    for (size_t i = 0; i < kernel->n_globals; i++) {
        CUdeviceptr *address = &variant->globals[i];
        size_t *size = &variant->global_sizes[i];
        const char *name = kernel->globals[i];
        CUresult result = code->is_library ? REAL_OR_NOT_FOUND(cuLibraryGetGlobal, address, size, code->library, name)
                                           : REAL_OR_NOT_FOUND(cuModuleGetGlobal_v2, address, size, code->module, name);
        if (result != CUDA_SUCCESS)
            return reason_with(VARIABLE_NOT_SHARED, name);
    }
    return NULL;
}

static void *read_file(const char *path)
{
    char *bytes = NULL;
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
    return bytes;
}

static const struct reason *load_module(const struct kernel *kernel, struct variant *variant)
{
    void *image = read_file(kernel->load_path);
    if (!image)
        return reason_with(PROBED_UNREADABLE, kernel->load_path);
    CUresult result = REAL_OR_NOT_FOUND(cuModuleLoadData, &variant->module, image);
    free(image);
    if (result != CUDA_SUCCESS) {
        variant->module = NULL;
        return reason_with(DRIVER_REFUSED, kernel->load_path, reason_error_name(result));
    }
    result = REAL_OR_NOT_FOUND(cuModuleGetFunction, &variant->function, variant->module, kernel->name);
    return result == CUDA_SUCCESS ? NULL : reason_with(KERNEL_MISSING, reason_error_name(result));
}

static const struct reason *load(const struct kernel *kernel, const struct launch *launch, struct variant *variant)
{
    const struct reason *reason = load_module(kernel, variant);
    if (!reason)
        reason = find_globals(kernel, variant);
    if (reason) {
        variant->function = NULL;
        return reason;
    }
    CUfunction original = variants_original(kernel, launch->function);
    if (original)
        copy_attributes(original, variant->function);
    return NULL;
}

static struct variant *make(struct kernel *kernel, const struct launch *launch, CUcontext context)
{
    struct variant *variant = calloc(1, sizeof *variant);
    if (!variant)
        return NULL;
    atomic_init(&variant->context, context);
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &variant->device) != CUDA_SUCCESS)
        variant->device = -1;
    int mode = capture_mode_relax();
    variant->reason = load(kernel, launch, variant);
    if (!variant->reason && !(variant->pool = buffers_pool(context, variant->device)))
        variant->reason = reason(NO_STREAM);
    capture_mode_restore(mode);
    variant->next = atomic_load_explicit(&kernel->variants, memory_order_relaxed);
    atomic_store_explicit(&kernel->variants, variant, memory_order_release);
    return variant;
}

struct variant *variants_get(struct kernel *kernel, const struct launch *launch, CUcontext context,
                             const struct reason **reason)
{
    struct variant *variant = find(kernel, context);
    if (!variant) {
        pthread_mutex_lock(&mutex);
        variant = find(kernel, context);
        if (!variant)
            variant = make(kernel, launch, context);
        pthread_mutex_unlock(&mutex);
    }
    *reason = variant ? variant->reason : reason(HOST_MEMORY);
    return *reason ? NULL : variant;
}

void variants_unload(struct code *code)
{
    if (!code)
        return;
    int mode = capture_mode_relax();
    CUcontext before = NULL;
    REAL_OR_NOT_FOUND(cuCtxGetCurrent, &before);
    pthread_mutex_lock(&mutex);
    for (struct kernel *kernel = code->kernels; kernel; kernel = kernel->next)
        for (struct variant *v = atomic_load(&kernel->variants); v; v = v->next) {
            CUcontext context = atomic_exchange(&v->context, NULL);
            if (context && v->module && REAL_OR_NOT_FOUND(cuCtxSetCurrent, context) == CUDA_SUCCESS)
                REAL_OR_NOT_FOUND(cuModuleUnload, v->module);
        }
    pthread_mutex_unlock(&mutex);
    REAL_OR_NOT_FOUND(cuCtxSetCurrent, before);
    capture_mode_restore(mode);
}

struct gone {
    CUcontext context;
    CUdevice device;
};

static void forget(struct kernel *kernel, void *argument)
{
    const struct gone *gone = argument;
    for (struct variant *v = atomic_load(&kernel->variants); v; v = v->next)
        if (gone->context ? atomic_load(&v->context) == gone->context : v->device == gone->device)
            atomic_store(&v->context, NULL);
}

void variants_forget(CUcontext context, CUdevice device)
{
    struct gone gone = {context, device};
    registry_each(forget, &gone);
}

void variants_set_attribute(const void *handle, int attribute, int value, CUdevice device)
{
    struct kernel *kernel = registry_find(handle);
    for (struct variant *v = kernel ? atomic_load(&kernel->variants) : NULL; v; v = v->next)
        if (v->function && atomic_load(&v->context) && (device < 0 || device == v->device))
            REAL_OR_NOT_FOUND(cuFuncSetAttribute, v->function, attribute, value);
}

void variants_set_cache(const void *handle, int config, CUdevice device)
{
    struct kernel *kernel = registry_find(handle);
    for (struct variant *v = kernel ? atomic_load(&kernel->variants) : NULL; v; v = v->next)
        if (v->function && atomic_load(&v->context) && (device < 0 || device == v->device))
            REAL_OR_NOT_FOUND(cuFuncSetCacheConfig, v->function, config);
}

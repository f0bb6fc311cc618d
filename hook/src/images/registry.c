#include "registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "context_handles.h"
#include "device.h"
#include "handle_table.h"
#include "kernels.h"
#include "real.h"
#include "reasons.h"
#include "settings.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct handle_table instances_by_handle;
static struct handle_table codes_by_handle;
static struct code *newest_code;
static uint64_t n_loads;

static bool is_this(const void *value, const void *wanted)
{
    return value == wanted;
}

static bool is_instance_of(const void *value, const void *code)
{
    return ((const struct instance *)value)->code == code;
}

struct code *registry_add_code(struct image *image, void *handle, bool is_library, uint64_t options)
{
    struct code *code = calloc(1, sizeof *code);
    if (!code) {
        image_release(image);
        return NULL;
    }
    code->image = image;
    code->handle = handle;
    code->is_library = is_library;
    code->options = options;
    if (!is_library && REAL_OR_NOT_FOUND(cuCtxGetCurrent, &code->context) != CUDA_SUCCESS)
        code->context = NULL;
    pthread_mutex_lock(&mutex);
    code->serial = n_loads++;
    code->older = newest_code;
    if (newest_code)
        newest_code->newer = code;
    newest_code = code;
    handle_table_put(&codes_by_handle, handle, code);
    pthread_mutex_unlock(&mutex);
    return code;
}

void registry_alias_code(struct code *code, void *handle)
{
    pthread_mutex_lock(&mutex);
    context_handles_put(&codes_by_handle, handle, code);
    pthread_mutex_unlock(&mutex);
}

struct code *registry_find_code(void *handle)
{
    return handle_table_get(&codes_by_handle, handle);
}

void registry_code_leaves(struct code *code, bool leaves)
{
    pthread_mutex_lock(&mutex);
    code->is_leaving = leaves;
    pthread_mutex_unlock(&mutex);
}

bool registry_code_is_leaving(const struct code *code)
{
    pthread_mutex_lock(&mutex);
    const bool is_leaving = code->is_leaving;
    pthread_mutex_unlock(&mutex);
    return is_leaving;
}

static void forget(struct code *code)
{
    handle_table_remove(&codes_by_handle, is_this, code);
    handle_table_remove(&instances_by_handle, is_instance_of, code);
    context_handles_remove(&codes_by_handle, is_this, code);
    context_handles_remove(&instances_by_handle, is_instance_of, code);
    *(code->newer ? &code->newer->older : &newest_code) = code->older;
    if (code->older)
        code->older->newer = code->newer;
    image_release(code->image);
    code->image = NULL;
    code->is_forgotten = true;
}

void registry_forget_code(struct code *code)
{
    pthread_mutex_lock(&mutex);
    if (!code->is_forgotten)
        forget(code);
    pthread_mutex_unlock(&mutex);
}

void registry_free_code(struct code *code)
{
    while (code->instances) {
        struct instance *instance = code->instances;
        code->instances = instance->next;
        free(instance->legacy_launch);
        free(instance->name);
        free(instance);
    }
    free(code);
}

void registry_leave_context(CUcontext context)
{
    pthread_mutex_lock(&mutex);
    for (struct code *code = newest_code; code; code = code->older)
        code->is_leaving = code->is_leaving || code->context == context;
    context_handles_leave(context, true);
    pthread_mutex_unlock(&mutex);
}

struct code *registry_settle_context(CUcontext context, bool gone)
{
    struct code *all_gone = NULL;
    pthread_mutex_lock(&mutex);
    for (struct code *code = newest_code, *next; code; code = next) {
        next = code->older;
        if (code->context != context || !code->is_leaving)
            continue;
        code->is_leaving = false;
        if (!gone)
            continue;
        forget(code);
        code->older = all_gone;
        all_gone = code;
    }
    if (gone)
        context_handles_forget(context);
    else
        context_handles_leave(context, false);
    pthread_mutex_unlock(&mutex);
    return all_gone;
}

static struct instance *instance_named(struct code *code, const char *name)
{
    for (struct instance *instance = code->instances; instance; instance = instance->next)
        if (strcmp(instance->name, name) == 0)
            return instance;
    struct instance *instance =
        calloc(1, sizeof *instance + (settings.n_probes + settings.fuses) * sizeof *instance->variants);
    if (!instance || !(instance->name = strdup(name))) {
        free(instance);
        return NULL;
    }
    instance->code = code;
    instance->next = code->instances;
    code->instances = instance;
    return instance;
}

struct instance *registry_add_instance(struct code *code, const char *name, void *handle, bool is_library_kernel)
{
    pthread_mutex_lock(&mutex);
    struct instance *instance = instance_named(code, name);
    if (instance && is_library_kernel && instance->library_kernel != handle)
        instance->library_kernel = handle;
    if (instance)
        handle_table_put(&instances_by_handle, handle, instance);
    pthread_mutex_unlock(&mutex);
    return instance;
}

void registry_alias_instance(struct instance *instance, void *handle)
{
    pthread_mutex_lock(&mutex);
    context_handles_put(&instances_by_handle, handle, instance);
    pthread_mutex_unlock(&mutex);
}

struct instance *registry_find(const void *handle)
{
    return handle_table_get(&instances_by_handle, handle);
}

struct instance *registry_find_of(const struct kernel *kernel, const void *handle)
{
    struct instance *instance = registry_find(handle);
    return instance && atomic_load_explicit(&instance->kernel, memory_order_acquire) == kernel ? instance : NULL;
}

static struct code *code_of_stranger(void *handle, bool is_library)
{
    struct code *code = registry_find_code(handle);
    return code ? code : registry_add_code(NULL, handle, is_library, 0);
}

static bool is_function_of(const struct instance *instance, CUfunction function, const char *name)
{
    CUfunction here;
    return instance->library_kernel && strcmp(instance->name, name) == 0 &&
           REAL_OR_NOT_FOUND(cuKernelGetFunction, &here, instance->library_kernel) == CUDA_SUCCESS && here == function;
}

/* The kernel of a library whose function in the current context this is: the program has its handle as a library
 * kernel, and the driver may report it by the function. */
static struct instance *instance_of_library(CUfunction function, const char *name)
{
    struct instance *match = NULL;
    pthread_mutex_lock(&mutex);
    for (struct code *code = newest_code; code && !match; code = code->older)
        for (struct instance *instance = code->instances; instance && !match; instance = instance->next)
            if (code->image && !code->is_leaving && is_function_of(instance, function, name))
                match = instance;
    if (match)
        context_handles_put(&instances_by_handle, function, match);
    pthread_mutex_unlock(&mutex);
    return match;
}

struct instance *registry_adopt(CUfunction function)
{
    const struct real_driver *driver = real();
    const char *name;
    CUmodule module;
    CUlibrary library;
    struct code *code;
    struct instance *of_library;
    if (driver->cuFuncGetName && driver->cuFuncGetName(&name, function) == CUDA_SUCCESS &&
        (of_library = instance_of_library(function, name)))
        return of_library;
    if (driver->cuFuncGetModule && driver->cuFuncGetName &&
        driver->cuFuncGetModule(&module, function) == CUDA_SUCCESS &&
        driver->cuFuncGetName(&name, function) == CUDA_SUCCESS && (code = code_of_stranger(module, false)))
        return registry_add_instance(code, name, function, false);
    CUkernel kernel = (CUkernel)(void *)function;
    if (driver->cuKernelGetLibrary && driver->cuKernelGetName &&
        driver->cuKernelGetLibrary(&library, kernel) == CUDA_SUCCESS &&
        driver->cuKernelGetName(&name, kernel) == CUDA_SUCCESS && (code = code_of_stranger(library, true)))
        return registry_add_instance(code, name, function, true);
    return NULL;
}

/* A record for a handle for which not even the driver knows the name. NULL without memory. */
static struct instance *add_stranger(CUfunction function)
{
    struct code *code = registry_add_code(NULL, function, false, 0);
    return code ? registry_add_instance(code, "?", function, false) : NULL;
}

/* Its kernel is not known yet: this is the first launch. */
static struct kernel *identify(struct instance *instance)
{
    const struct code *code = instance->code;
    CUdevice device;
    struct identity identity = {.options = code->options};
    const bool is_stranger = !code->image && strcmp(instance->name, "?") == 0;
    if (is_stranger)
        identity.image.high = UINT64_MAX; /* handles for which nothing is known share a row */
    else if (!code->image || !image_digest(code->image, &identity.image))
        identity.image = (struct digest){.high = code->serial}; /* the same as no other */
    if (REAL_OR_NOT_FOUND(cuCtxGetDevice, &device) == CUDA_SUCCESS)
        identity.capability = device_capability(device);
    struct kernel *kernel = kernels_get(&identity, instance->name);
    if (kernel && is_stranger)
        atomic_store(&kernel->reason, reason(UNKNOWN_FUNCTION));
    atomic_store_explicit(&instance->kernel, kernel, memory_order_release);
    return kernel;
}

struct instance *registry_instance(CUfunction function)
{
    struct instance *instance = registry_find(function);
    if (!instance)
        instance = registry_adopt(function);
    if (!instance)
        instance = add_stranger(function);
    if (!instance)
        return NULL;
    return atomic_load_explicit(&instance->kernel, memory_order_acquire) || identify(instance) ? instance : NULL;
}

CUfunction registry_function(const struct instance *instance, CUfunction launched)
{
    CUfunction function = launched;
    if ((void *)launched == (void *)instance->library_kernel &&
        REAL_OR_NOT_FOUND(cuKernelGetFunction, &function, instance->library_kernel) != CUDA_SUCCESS)
        return NULL;
    return function;
}

void registry_each(void (*visit)(struct instance *instance, void *argument), void *argument)
{
    pthread_mutex_lock(&mutex);
    for (struct code *code = newest_code; code; code = code->older)
        for (struct instance *instance = code->instances; instance; instance = instance->next)
            visit(instance, argument);
    pthread_mutex_unlock(&mutex);
}

void registry_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    context_handles_reset();
}

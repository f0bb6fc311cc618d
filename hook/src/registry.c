#include "registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "context_handles.h"
#include "handle_table.h"
#include "real.h"
#include "settings.h"
#include "stepwise.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct handle_table kernels_by_handle;
static struct handle_table codes_by_handle;
static struct kernel *newest_kernel;
static struct code *newest_code;
static uint32_t kernels_launched;

static bool is_this(const void *value, const void *wanted)
{
    return value == wanted;
}

static bool is_kernel_of(const void *value, const void *code)
{
    return ((const struct kernel *)value)->code == code;
}

/* What is left of an earlier load whose handle the driver uses again. */
static void forget(struct code *code)
{
    handle_table_remove(&codes_by_handle, is_this, code);
    handle_table_remove(&kernels_by_handle, is_kernel_of, code);
    context_handles_remove(&codes_by_handle, is_this, code);
    context_handles_remove(&kernels_by_handle, is_kernel_of, code);
    stepwise_forget();
    image_release(code->image);
    code->image = NULL;
}

struct code *registry_add_code(struct image *image, void *handle, bool is_library)
{
    struct code *code = calloc(1, sizeof *code);
    if (!code) {
        image_release(image);
        return NULL;
    }
    code->image = image;
    code->handle = handle;
    code->is_library = is_library;
    if (!is_library && REAL_OR_NOT_FOUND(cuCtxGetCurrent, &code->context) != CUDA_SUCCESS)
        code->context = NULL;
    pthread_mutex_lock(&mutex);
    struct code *stale = handle_table_get(&codes_by_handle, handle);
    if (stale)
        forget(stale);
    code->next = newest_code;
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

void registry_forget_code(struct code *code)
{
    if (!code)
        return;
    pthread_mutex_lock(&mutex);
    forget(code);
    pthread_mutex_unlock(&mutex);
}

void registry_leave_context(CUcontext context)
{
    pthread_mutex_lock(&mutex);
    for (struct code *code = newest_code; code; code = code->next)
        code->is_leaving = code->is_leaving || code->context == context;
    context_handles_leave(context, true);
    pthread_mutex_unlock(&mutex);
}

void registry_settle_context(CUcontext context, bool gone)
{
    pthread_mutex_lock(&mutex);
    for (struct code *code = newest_code, *next; code; code = next) {
        next = code->next;
        if (code->context != context || !code->is_leaving)
            continue;
        code->is_leaving = false;
        if (!gone)
            continue;
        code->context = NULL;
        forget(code);
    }
    if (gone)
        context_handles_forget(context);
    else
        context_handles_leave(context, false);
    pthread_mutex_unlock(&mutex);
}

static struct kernel *new_kernel(void)
{
    const size_t n = settings.n_probes;
    struct kernel *kernel = calloc(1, sizeof *kernel + n * sizeof *kernel->probings);
    for (size_t i = 0; kernel && i < n; i++) {
        kernel->probings[i].kernel = kernel;
        kernel->probings[i].probe = settings.probes[i].name;
        kernel->probings[i].sampling = settings.probes[i].sampling;
    }
    if (kernel)
        kernel->n_probings = n;
    return kernel;
}

static struct kernel *kernel_named(struct code *code, const char *name)
{
    for (struct kernel *kernel = code->kernels; kernel; kernel = kernel->next)
        if (strcmp(kernel->name, name) == 0)
            return kernel;
    struct kernel *kernel = new_kernel();
    if (!kernel || !(kernel->name = strdup(name))) {
        free(kernel);
        return NULL;
    }
    kernel->code = code;
    kernel->index = KERNEL_NO_INDEX;
    kernel->next = code->kernels;
    code->kernels = kernel;
    kernel->older = newest_kernel;
    newest_kernel = kernel;
    return kernel;
}

struct kernel *registry_add_kernel(struct code *code, const char *name, void *handle, bool is_library_kernel)
{
    pthread_mutex_lock(&mutex);
    struct kernel *kernel = kernel_named(code, name);
    if (kernel && is_library_kernel && kernel->library_kernel != handle)
        kernel->library_kernel = handle;
    if (kernel)
        handle_table_put(&kernels_by_handle, handle, kernel);
    pthread_mutex_unlock(&mutex);
    return kernel;
}

void registry_alias_kernel(struct kernel *kernel, void *handle)
{
    pthread_mutex_lock(&mutex);
    context_handles_put(&kernels_by_handle, handle, kernel);
    pthread_mutex_unlock(&mutex);
}

struct kernel *registry_find(const void *handle)
{
    return handle_table_get(&kernels_by_handle, handle);
}

static struct code *code_of_stranger(void *handle, bool is_library)
{
    struct code *code = registry_find_code(handle);
    return code ? code : registry_add_code(NULL, handle, is_library);
}

/* The kernel of a library whose function in the current context this is: the program has its handle as a library kernel,
 * and the driver may tell of it by the function. */
static struct kernel *kernel_of_library(CUfunction function, const char *name)
{
    struct kernel *found = NULL;
    pthread_mutex_lock(&mutex);
    for (struct kernel *kernel = newest_kernel; kernel && !found; kernel = kernel->older) {
        CUfunction here;
        if (kernel->library_kernel && kernel->code->image && !kernel->code->is_leaving &&
            strcmp(kernel->name, name) == 0 &&
            REAL_OR_NOT_FOUND(cuKernelGetFunction, &here, kernel->library_kernel) == CUDA_SUCCESS && here == function)
            found = kernel;
    }
    if (found)
        context_handles_put(&kernels_by_handle, function, found);
    pthread_mutex_unlock(&mutex);
    return found;
}

struct kernel *registry_adopt(CUfunction function)
{
    const struct real_driver *driver = real();
    const char *name;
    CUmodule module;
    CUlibrary library;
    struct code *code;
    struct kernel *of_library;
    if (driver->cuFuncGetName && driver->cuFuncGetName(&name, function) == CUDA_SUCCESS &&
        (of_library = kernel_of_library(function, name)))
        return of_library;
    if (driver->cuFuncGetModule && driver->cuFuncGetName &&
        driver->cuFuncGetModule(&module, function) == CUDA_SUCCESS &&
        driver->cuFuncGetName(&name, function) == CUDA_SUCCESS && (code = code_of_stranger(module, false)))
        return registry_add_kernel(code, name, function, false);
    CUkernel kernel = (CUkernel)(void *)function;
    if (driver->cuKernelGetLibrary && driver->cuKernelGetName &&
        driver->cuKernelGetLibrary(&library, kernel) == CUDA_SUCCESS &&
        driver->cuKernelGetName(&name, kernel) == CUDA_SUCCESS && (code = code_of_stranger(library, true)))
        return registry_add_kernel(code, name, function, true);
    return NULL;
}

/* A record for a handle of which not even the driver knows the name. NULL without memory. */
static struct kernel *add_stranger(CUfunction function)
{
    struct code *code = registry_add_code(NULL, function, false);
    struct kernel *kernel = code ? registry_add_kernel(code, "?", function, false) : NULL;
    if (kernel)
        atomic_store(&kernel->reason, reason(UNKNOWN_FUNCTION));
    return kernel;
}

struct kernel *registry_kernel(CUfunction function)
{
    struct kernel *kernel = registry_find(function);
    if (!kernel)
        kernel = registry_adopt(function);
    return kernel ? kernel : add_stranger(function);
}

void registry_number_kernel(struct kernel *kernel)
{
    pthread_mutex_lock(&mutex);
    if (kernel->index == KERNEL_NO_INDEX)
        kernel->index = kernels_launched++;
    pthread_mutex_unlock(&mutex);
}

void registry_each(void (*visit)(struct kernel *kernel, void *argument), void *argument)
{
    pthread_mutex_lock(&mutex);
    for (struct kernel *kernel = newest_kernel; kernel; kernel = kernel->older)
        visit(kernel, argument);
    pthread_mutex_unlock(&mutex);
}

void registry_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    context_handles_reset();
}

/* Wrappers of the functions that load images and hand out kernels. The driver goes first: what it
 * refuses leaves nothing but a line in the log. */
#include <stdbool.h>

#include "ahead.h"
#include "allocations.h"
#include "errand.h"
#include "event_log.h"
#include "hook_state.h"
#include "load_options.h"
#include "memory_pressure.h"
#include "real.h"
#include "registry.h"
#include "unloading.h"
#include "watchdog.h"

/* Whose code called the wrapper that says so. */
#define CALLER __builtin_return_address(0)

/* Longer names and paths are cut. */
#define LOGGED_BYTES "65536"

static void remember(struct image *image, void *handle, bool is_library, uint64_t options)
{
    errand_start();
    watchdog_start();
    if (image)
        event_log_often("[bin] type %s size %zu\n", image_type_name(image->type), image->size);
    unloading_unseen(handle);
    ahead_image_loaded(image);
    registry_add_code(image, handle, is_library, options);
}

static CUresult module_loaded(const char *function, CUresult result, CUmodule *module, const void *code,
                              uint64_t options, const void *caller)
{
    if (!hook_active())
        return result;
    CUmodule handle = result == CUDA_SUCCESS ? *module : NULL;
    event_log_often("[mod] %s %d module %p image %p\n", function, result, (void *)handle, code);
    if (handle)
        remember(image_capture(code, IMAGE_SIZE_UNKNOWN, &(struct origin){.caller = caller}), handle, false, options);
    return result;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    CUresult result = WITH_MEMORY(cuModuleLoad, module, path);
    if (!hook_active())
        return result;
    CUmodule handle = result == CUDA_SUCCESS ? *module : NULL;
    event_log_often("[mod] cuModuleLoad %d module %p fname %." LOGGED_BYTES "s\n", result, (void *)handle,
                    path ? path : "-");
    if (handle)
        remember(image_capture_file(path), handle, false, 0);
    return result;
}

CUresult cuModuleLoadData(CUmodule *module, const void *code)
{
    return module_loaded("cuModuleLoadData", WITH_MEMORY(cuModuleLoadData, module, code), module, code, 0, CALLER);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *code, unsigned int n, int *options, void **values)
{
    const uint64_t hash = load_options_hash(n, options, values);
    return module_loaded("cuModuleLoadDataEx", WITH_MEMORY(cuModuleLoadDataEx, module, code, n, options, values),
                         module, code, hash, CALLER);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *code)
{
    return module_loaded("cuModuleLoadFatBinary", WITH_MEMORY(cuModuleLoadFatBinary, module, code), module, code, 0,
                         CALLER);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *options, void **values, unsigned int n,
                           int *library_options, void **library_values, unsigned int n_library)
{
    const uint64_t hash = load_options_hash(n, options, values);
    CUresult result =
        WITH_MEMORY(cuLibraryLoadData, library, code, options, values, n, library_options, library_values, n_library);
    if (!hook_active())
        return result;
    CUlibrary handle = result == CUDA_SUCCESS ? *library : NULL;
    event_log_often("[mod] cuLibraryLoadData %d lib %p code %p\n", result, (void *)handle, code);
    if (handle)
        remember(image_capture(code, IMAGE_SIZE_UNKNOWN, &(struct origin){.caller = CALLER}), handle, true, hash);
    return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *options, void **values, unsigned int n,
                               int *library_options, void **library_values, unsigned int n_library)
{
    const uint64_t hash = load_options_hash(n, options, values);
    CUresult result = WITH_MEMORY(cuLibraryLoadFromFile, library, path, options, values, n, library_options,
                                  library_values, n_library);
    if (!hook_active())
        return result;
    CUlibrary handle = result == CUDA_SUCCESS ? *library : NULL;
    event_log_often("[mod] cuLibraryLoadFromFile %d lib %p fname %." LOGGED_BYTES "s\n", result, (void *)handle,
                    path ? path : "-");
    if (handle)
        remember(image_capture_file(path), handle, true, hash);
    return result;
}

static CUresult unloaded(const char *function, const char *what, CUresult result, void *handle, struct code *code)
{
    if (!hook_active())
        return result;
    event_log_often("[mod] %s %d %s %p\n", function, result, what, handle);
    unloading_end(code, result == CUDA_SUCCESS);
    if (result == CUDA_SUCCESS)
        allocations_remove_variables(handle);
    return result;
}

CUresult cuModuleUnload(CUmodule module)
{
    struct code *code = unloading_begin(module);
    return unloaded("cuModuleUnload", "module", REAL_OR_NOT_FOUND(cuModuleUnload, module), module, code);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    struct code *code = unloading_begin(library);
    return unloaded("cuLibraryUnload", "lib", REAL_OR_NOT_FOUND(cuLibraryUnload, library), library, code);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = WITH_MEMORY(cuModuleGetFunction, function, module, name);
    struct code *code;
    if (result != CUDA_SUCCESS || !hook_active())
        return result;
    event_log_often("[mod] cuModuleGetFunction func %p mod %p name %." LOGGED_BYTES "s\n", (void *)*function,
                    (void *)module, name);
    if ((code = registry_find_code(module)))
        registry_add_instance(code, name, *function, false);
    return result;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult result = WITH_MEMORY(cuLibraryGetKernel, kernel, library, name);
    struct code *code;
    if (result != CUDA_SUCCESS || !hook_active())
        return result;
    event_log_often("[mod] cuLibraryGetKernel kernel %p lib %p name %." LOGGED_BYTES "s\n", (void *)*kernel,
                    (void *)library, name);
    if ((code = registry_find_code(library)))
        registry_add_instance(code, name, *kernel, true);
    return result;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    CUresult result = WITH_MEMORY(cuLibraryGetModule, module, library);
    struct code *code;
    if (result != CUDA_SUCCESS || !hook_active())
        return result;
    event_log_often("[mod] cuLibraryGetModule mod %p lib %p\n", (void *)*module, (void *)library);
    if ((code = registry_find_code(library)) && registry_find_code(*module) != code)
        registry_alias_code(code, *module);
    return result;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUresult result = WITH_MEMORY(cuKernelGetFunction, function, kernel);
    struct instance *known;
    if (result != CUDA_SUCCESS || !hook_active() || !(known = registry_find(kernel)) ||
        registry_find(*function) == known)
        return result;
    event_log_often("[mod] cuKernelGetFunction func %p kernel %p\n", (void *)*function, (void *)kernel);
    registry_alias_instance(known, *function);
    return result;
}

/* The driver fills no more entries than there are; the rest of the program's array means nothing. */
static unsigned int smaller(unsigned int asked, CUresult result, unsigned int present)
{
    if (result != CUDA_SUCCESS)
        return 0;
    return asked < present ? asked : present;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int n, CUmodule module)
{
    CUresult result = WITH_MEMORY(cuModuleEnumerateFunctions, functions, n, module);
    unsigned int present = 0;
    if (result != CUDA_SUCCESS || !hook_active() || !functions)
        return result;
    n = smaller(n, REAL_OR_NOT_FOUND(cuModuleGetFunctionCount, &present, module), present);
    event_log_often("[mod] cuModuleEnumerateFunctions mod %p count %u\n", (void *)module, n);
    for (unsigned int i = 0; i < n; i++)
        if (functions[i] && !registry_find(functions[i]))
            registry_adopt(functions[i]);
    return result;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int n, CUlibrary library)
{
    CUresult result = WITH_MEMORY(cuLibraryEnumerateKernels, kernels, n, library);
    struct code *code;
    const char *name;
    unsigned int present = 0;
    if (result != CUDA_SUCCESS || !hook_active() || !kernels || !(code = registry_find_code(library)))
        return result;
    n = smaller(n, REAL_OR_NOT_FOUND(cuLibraryGetKernelCount, &present, library), present);
    event_log_often("[mod] cuLibraryEnumerateKernels lib %p count %u\n", (void *)library, n);
    for (unsigned int i = 0; i < n; i++)
        if (kernels[i] && !registry_find(kernels[i]) &&
            REAL_OR_NOT_FOUND(cuKernelGetName, &name, kernels[i]) == CUDA_SUCCESS)
            registry_add_instance(code, name, kernels[i], true);
    return result;
}

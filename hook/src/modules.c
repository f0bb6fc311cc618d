/* Wrappers of the functions that load images and hand out kernels. The driver goes first: what it
 * refuses leaves nothing but a line in the log. */
#include <stdbool.h>

#include "background.h"
#include "errand.h"
#include "event_log.h"
#include "hook_state.h"
#include "memory_pressure.h"
#include "real.h"
#include "registry.h"
#include "variants.h"

/* Whose code called the wrapper that says so. */
#define CALLER __builtin_return_address(0)

static void remember(struct image *image, void *handle, bool is_library)
{
    errand_start();
    if (image)
        event_log("[bin] type %s size %zu\n", image_type_name(image->type), image->size);
    registry_add_code(image, handle, is_library);
}

static CUresult module_loaded(const char *function, CUresult result, CUmodule *module, const void *code,
                              const void *caller)
{
    if (!hook_active())
        return result;
    CUmodule handle = result == CUDA_SUCCESS ? *module : NULL;
    event_log("[mod] %s %d module %p image %p\n", function, result, (void *)handle, code);
    if (handle)
        remember(image_capture(code, IMAGE_SIZE_UNKNOWN, &(struct origin){.caller = caller}), handle, false);
    return result;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    CUresult result = WITH_MEMORY(cuModuleLoad, module, path);
    if (!hook_active())
        return result;
    CUmodule handle = result == CUDA_SUCCESS ? *module : NULL;
    event_log("[mod] cuModuleLoad %d module %p fname %s\n", result, (void *)handle, path ? path : "-");
    if (handle)
        remember(image_capture_file(path), handle, false);
    return result;
}

CUresult cuModuleLoadData(CUmodule *module, const void *code)
{
    return module_loaded("cuModuleLoadData", WITH_MEMORY(cuModuleLoadData, module, code), module, code, CALLER);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *code, unsigned int n, int *options, void **values)
{
    return module_loaded("cuModuleLoadDataEx", WITH_MEMORY(cuModuleLoadDataEx, module, code, n, options, values),
                         module, code, CALLER);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *code)
{
    return module_loaded("cuModuleLoadFatBinary", WITH_MEMORY(cuModuleLoadFatBinary, module, code), module, code,
                         CALLER);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *options, void **values, unsigned int n,
                           int *library_options, void **library_values, unsigned int n_library)
{
    CUresult result =
        WITH_MEMORY(cuLibraryLoadData, library, code, options, values, n, library_options, library_values, n_library);
    if (!hook_active())
        return result;
    CUlibrary handle = result == CUDA_SUCCESS ? *library : NULL;
    event_log("[mod] cuLibraryLoadData %d lib %p code %p\n", result, (void *)handle, code);
    if (handle)
        remember(image_capture(code, IMAGE_SIZE_UNKNOWN, &(struct origin){.caller = CALLER}), handle, true);
    return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *options, void **values, unsigned int n,
                               int *library_options, void **library_values, unsigned int n_library)
{
    CUresult result = WITH_MEMORY(cuLibraryLoadFromFile, library, path, options, values, n, library_options,
                                  library_values, n_library);
    if (!hook_active())
        return result;
    CUlibrary handle = result == CUDA_SUCCESS ? *library : NULL;
    event_log("[mod] cuLibraryLoadFromFile %d lib %p fname %s\n", result, (void *)handle, path ? path : "-");
    if (handle)
        remember(image_capture_file(path), handle, true);
    return result;
}

static CUresult unloaded(const char *function, const char *what, CUresult result, void *handle, struct code *code)
{
    if (!hook_active())
        return result;
    event_log("[mod] %s %d %s %p\n", function, result, what, handle);
    if (result == CUDA_SUCCESS) {
        registry_forget_code(code);
        variants_unload(code);
    } else if (code) {
        registry_code_leaves(code, false);
    }
    return result;
}

/* Which load it is must be known before the driver gives the handle to another. */
static struct code *about_to_go(void *handle)
{
    struct code *code = registry_find_code(handle);
    if (code) {
        registry_code_leaves(code, true);
        background_leave(code);
    }
    return code;
}

CUresult cuModuleUnload(CUmodule module)
{
    struct code *code = about_to_go(module);
    return unloaded("cuModuleUnload", "module", REAL_OR_NOT_FOUND(cuModuleUnload, module), module, code);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    struct code *code = about_to_go(library);
    return unloaded("cuLibraryUnload", "lib", REAL_OR_NOT_FOUND(cuLibraryUnload, library), library, code);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = WITH_MEMORY(cuModuleGetFunction, function, module, name);
    struct code *code;
    if (result != CUDA_SUCCESS || !hook_active())
        return result;
    event_log("[mod] cuModuleGetFunction func %p mod %p name %s\n", (void *)*function, (void *)module, name);
    if ((code = registry_find_code(module)))
        registry_add_kernel(code, name, *function, false);
    return result;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    CUresult result = WITH_MEMORY(cuLibraryGetKernel, kernel, library, name);
    struct code *code;
    if (result != CUDA_SUCCESS || !hook_active())
        return result;
    event_log("[mod] cuLibraryGetKernel kernel %p lib %p name %s\n", (void *)*kernel, (void *)library, name);
    if ((code = registry_find_code(library)))
        registry_add_kernel(code, name, *kernel, true);
    return result;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    CUresult result = WITH_MEMORY(cuLibraryGetModule, module, library);
    struct code *code;
    if (result != CUDA_SUCCESS || !hook_active())
        return result;
    event_log("[mod] cuLibraryGetModule mod %p lib %p\n", (void *)*module, (void *)library);
    if ((code = registry_find_code(library)))
        registry_alias_code(code, *module);
    return result;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUresult result = WITH_MEMORY(cuKernelGetFunction, function, kernel);
    struct kernel *known;
    if (result != CUDA_SUCCESS || !hook_active() || !(known = registry_find(kernel)) ||
        registry_find(*function) == known)
        return result;
    event_log("[mod] cuKernelGetFunction func %p kernel %p\n", (void *)*function, (void *)kernel);
    registry_alias_kernel(known, *function);
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
    event_log("[mod] cuModuleEnumerateFunctions mod %p count %u\n", (void *)module, n);
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
    event_log("[mod] cuLibraryEnumerateKernels lib %p count %u\n", (void *)library, n);
    for (unsigned int i = 0; i < n; i++)
        if (kernels[i] && !registry_find(kernels[i]) &&
            REAL_OR_NOT_FOUND(cuKernelGetName, &name, kernels[i]) == CUDA_SUCCESS)
            registry_add_kernel(code, name, kernels[i], true);
    return result;
}

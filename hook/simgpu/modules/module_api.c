/* cuModule… and cuLibrary…: a module belongs to a context, a library to none; else they are alike. */

#include <stdlib.h>

#include "current.h"
#include "image.h"
#include "jit_options.h"
#include "module.h"

/* Answers that cuModule… and cuLibrary… have in common. The caller has locked the driver; a failure, and each leave_with, unlocks
 * it. */

static CUresult find_kernel(struct module *module, const char *name, const void *answer, const struct kernel **kernel)
{
    if (!answer || !name)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *kernel = module_kernel(module, name);
    return *kernel ? CUDA_SUCCESS : leave(CUDA_ERROR_NOT_FOUND);
}

static CUresult leave_with_kernel_count(unsigned *count, const struct module *module)
{
    if (!count)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *count = module->kernel_count;
    return leave(CUDA_SUCCESS);
}

static CUresult leave_with_variable(CUdeviceptr *address, size_t *bytes, struct module *module, const char *name)
{
    if (!name || (!address && !bytes))
        return leave(CUDA_ERROR_INVALID_VALUE);
    const struct variable *variable = module_variable(module, name);
    if (!variable)
        return leave(CUDA_ERROR_NOT_FOUND);
    if (address)
        *address = variable->address;
    if (bytes)
        *bytes = variable->size;
    return leave(CUDA_SUCCESS);
}

static CUresult load_module(CUmodule *handle, const void *image, size_t limit, unsigned count, const int *options,
                            void **values)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!handle)
        return leave(CUDA_ERROR_INVALID_VALUE);
    struct module *module;
    char *error;
    result = module_load(image, limit, context, &module, &error);
    give_jit_log(count, options, values, error);
    free(error);
    if (!result)
        *handle = module->handle;
    return leave(result);
}

API cuModuleLoadData(CUmodule *handle, const void *image)
{
    return load_module(handle, image, SIZE_MAX, 0, NULL, NULL);
}

API cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned count, int *options, void **values)
{
    return load_module(handle, image, SIZE_MAX, count, options, values);
}

API cuModuleLoadFatBinary(CUmodule *handle, const void *image)
{
    return load_module(handle, image, SIZE_MAX, 0, NULL, NULL);
}

API cuModuleLoad(CUmodule *handle, const char *path)
{
    void *image;
    size_t bytes;
    CUresult result = image_read_file(path, &image, &bytes);
    if (result)
        return result;
    result = load_module(handle, image, bytes, 0, NULL, NULL);
    free(image);
    return result;
}

/* Locks the driver and finds a module. Fails, without the lock, for a handle that is none. */
static CUresult enter_module(CUmodule handle, struct module **module)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    *module = handle_object(HANDLE_MODULE, handle);
    return *module ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_HANDLE);
}

API cuModuleUnload(CUmodule handle)
{
    struct module *module;
    CUresult result = enter_module(handle, &module);
    if (result)
        return result;
    if (!module->owner)
        return leave(CUDA_ERROR_NOT_PERMITTED); /* a library's: cuLibraryUnload */
    module_unload(module);
    return leave(CUDA_SUCCESS);
}

API cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
    struct module *module;
    CUresult result = enter_module(handle, &module);
    const struct kernel *kernel;
    if (!result)
        result = find_kernel(module, name, function, &kernel);
    if (result)
        return result;
    *function = kernel->function_handle;
    return leave(CUDA_SUCCESS);
}

API cuModuleGetFunctionCount(unsigned *count, CUmodule handle)
{
    struct module *module;
    CUresult result = enter_module(handle, &module);
    return result ? result : leave_with_kernel_count(count, module);
}

API cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule handle)
{
    struct module *module;
    CUresult result = enter_module(handle, &module);
    if (result)
        return result;
    if (!functions || !count)
        return leave(CUDA_ERROR_INVALID_VALUE);
    for (uint32_t i = 0; i < count && i < module->kernel_count; i++)
        functions[i] = module->kernels[i].function_handle;
    return leave(CUDA_SUCCESS);
}

API cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name)
{
    struct module *module;
    CUresult result = enter_module(handle, &module);
    return result ? result : leave_with_variable(address, bytes, module, name);
}

API cuModuleGetLoadingMode(int *mode)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (!mode)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *mode = 2; /* lazy: a kernel is compiled when it is first asked for */
    return leave(CUDA_SUCCESS);
}

/* Locks the driver and finds a library. Fails, without the lock, for a handle that is none. */
static CUresult enter_library(CUlibrary handle, struct module **module)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    *module = handle_object(HANDLE_LIBRARY, handle);
    return *module ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_HANDLE);
}

static CUresult load_library(CUlibrary *handle, const void *image, size_t limit)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    if (!handle)
        return leave(CUDA_ERROR_INVALID_VALUE);
    struct module *module;
    char *error;
    result = module_load(image, limit, NULL, &module, &error);
    free(error);
    if (!result)
        *handle = module->library_handle;
    return leave(result);
}

API cuLibraryLoadData(CUlibrary *handle, const void *image, const int *options, void **values, unsigned option_count,
                      const int *library_options, void **library_values, unsigned library_option_count)
{
    (void)options, (void)values, (void)option_count; /* how to compile: there is one way */
    (void)library_options, (void)library_values, (void)library_option_count;
    return load_library(handle, image, SIZE_MAX);
}

API cuLibraryLoadFromFile(CUlibrary *handle, const char *path, const int *options, void **values, unsigned option_count,
                          const int *library_options, void **library_values, unsigned library_option_count)
{
    (void)options, (void)values, (void)option_count;
    (void)library_options, (void)library_values, (void)library_option_count;
    void *image;
    size_t bytes;
    CUresult result = image_read_file(path, &image, &bytes);
    if (result)
        return result;
    result = load_library(handle, image, bytes);
    free(image);
    return result;
}

API cuLibraryUnload(CUlibrary handle)
{
    struct module *module;
    CUresult result = enter_library(handle, &module);
    if (result)
        return result;
    module_unload(module);
    return leave(CUDA_SUCCESS);
}

API cuLibraryGetKernel(CUkernel *answer, CUlibrary handle, const char *name)
{
    struct module *module;
    CUresult result = enter_library(handle, &module);
    const struct kernel *kernel;
    if (!result)
        result = find_kernel(module, name, answer, &kernel);
    if (result)
        return result;
    *answer = kernel->kernel_handle;
    return leave(CUDA_SUCCESS);
}

API cuLibraryGetKernelCount(unsigned *count, CUlibrary handle)
{
    struct module *module;
    CUresult result = enter_library(handle, &module);
    return result ? result : leave_with_kernel_count(count, module);
}

API cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary handle)
{
    struct module *module;
    CUresult result = enter_library(handle, &module);
    if (result)
        return result;
    if (!kernels || !count)
        return leave(CUDA_ERROR_INVALID_VALUE);
    for (uint32_t i = 0; i < count && i < module->kernel_count; i++)
        kernels[i] = module->kernels[i].kernel_handle;
    return leave(CUDA_SUCCESS);
}

API cuLibraryGetModule(CUmodule *answer, CUlibrary handle)
{
    struct module *module;
    CUresult result = enter_library(handle, &module);
    if (result)
        return result;
    if (!answer)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *answer = module->handle;
    return leave(CUDA_SUCCESS);
}

API cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
    struct module *module;
    CUresult result = enter_library(handle, &module);
    return result ? result : leave_with_variable(address, bytes, module, name);
}

static CUresult enter_library_kernel(CUkernel handle, const struct kernel **kernel)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    *kernel = handle_object(HANDLE_KERNEL, handle);
    return *kernel ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_HANDLE);
}

API cuKernelGetFunction(CUfunction *function, CUkernel handle)
{
    const struct kernel *kernel;
    CUresult result = enter_library_kernel(handle, &kernel);
    if (result)
        return result;
    if (!function)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *function = kernel->function_handle;
    return leave(CUDA_SUCCESS);
}

API cuKernelGetLibrary(CUlibrary *library, CUkernel handle)
{
    const struct kernel *kernel;
    CUresult result = enter_library_kernel(handle, &kernel);
    if (result)
        return result;
    if (!library)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *library = kernel->module->library_handle;
    return leave(CUDA_SUCCESS);
}

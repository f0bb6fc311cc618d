/* cuLibrary…: modules that belong to no context, and their kernels. */

#include <stdlib.h>

#include "image.h"
#include "module.h"

/* Locks the driver and finds a library. Fails, without the lock, for a handle that is none. */
static CUresult enter_library(CUlibrary handle, struct module **module)
{
    CUresult result = enter_driver();
    if (result)
        return result;
    *module = handle_object(HANDLE_LIBRARY, handle);
    return *module ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_HANDLE);
}

static CUresult load(CUlibrary *handle, const void *image, size_t limit)
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
    return load(handle, image, SIZE_MAX);
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
    result = load(handle, image, bytes);
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
    if (result)
        return result;
    if (!answer || !name)
        return leave(CUDA_ERROR_INVALID_VALUE);
    const struct kernel *kernel = module_kernel(module, name);
    if (!kernel)
        return leave(CUDA_ERROR_NOT_FOUND);
    *answer = kernel->kernel_handle;
    return leave(CUDA_SUCCESS);
}

API cuLibraryGetKernelCount(unsigned *count, CUlibrary handle)
{
    struct module *module;
    CUresult result = enter_library(handle, &module);
    if (result)
        return result;
    if (!count)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *count = module->kernel_count;
    return leave(CUDA_SUCCESS);
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
    if (result)
        return result;
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

/* cuModule… */

#include <stdlib.h>

#include "current.h"
#include "image.h"
#include "jit_options.h"
#include "module.h"

static CUresult load(CUmodule *handle, const void *image, size_t limit, unsigned count, const int *options,
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
    return load(handle, image, SIZE_MAX, 0, NULL, NULL);
}

API cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned count, int *options, void **values)
{
    return load(handle, image, SIZE_MAX, count, options, values);
}

API cuModuleLoadFatBinary(CUmodule *handle, const void *image)
{
    return load(handle, image, SIZE_MAX, 0, NULL, NULL);
}

API cuModuleLoad(CUmodule *handle, const char *path)
{
    void *image;
    size_t bytes;
    CUresult result = image_read_file(path, &image, &bytes);
    if (result)
        return result;
    result = load(handle, image, bytes, 0, NULL, NULL);
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
    if (result)
        return result;
    if (!function || !name)
        return leave(CUDA_ERROR_INVALID_VALUE);
    const struct kernel *kernel = module_kernel(module, name);
    if (!kernel)
        return leave(CUDA_ERROR_NOT_FOUND);
    *function = kernel->function_handle;
    return leave(CUDA_SUCCESS);
}

API cuModuleGetFunctionCount(unsigned *count, CUmodule handle)
{
    struct module *module;
    CUresult result = enter_module(handle, &module);
    if (result)
        return result;
    if (!count)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *count = module->kernel_count;
    return leave(CUDA_SUCCESS);
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

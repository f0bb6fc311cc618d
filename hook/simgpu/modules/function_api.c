/* cuFunc… and cuKernel…: what a kernel is, and what a program sets on it. */

#include "machine.h"
#include "module.h"

static int constant_bytes(const struct module *module)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < module->variable_count; i++) {
        if (module->variables[i].is_constant)
            bytes += module->variables[i].size;
    }
    return (int)bytes;
}

/* The registers of PTX text are estimated: programs choose launch shapes by them. Loads are cached in one way only. */
static CUresult read_attribute(int *value, int attribute, const struct kernel *kernel)
{
    switch (attribute) {
    case FUNCTION_MAX_THREADS:
        *value = (int)kernel->max_threads;
        return CUDA_SUCCESS;
    case FUNCTION_SHARED_BYTES:
        *value = (int)kernel->static_shared_bytes;
        return CUDA_SUCCESS;
    case FUNCTION_CONST_BYTES:
        *value = constant_bytes(kernel->module);
        return CUDA_SUCCESS;
    case FUNCTION_LOCAL_BYTES:
        *value = (int)kernel->local_bytes;
        return CUDA_SUCCESS;
    case FUNCTION_REGISTERS:
        *value = kernel->registers >= 0 ? kernel->registers : kernel->estimated_registers;
        return CUDA_SUCCESS;
    case FUNCTION_PTX_VERSION:
        *value = (int)kernel->module->target;
        return CUDA_SUCCESS;
    case FUNCTION_BINARY_VERSION:
        *value = driver.generation->major * 10 + driver.generation->minor;
        return CUDA_SUCCESS;
    case FUNCTION_MAX_DYNAMIC_SHARED:
        *value = kernel_dynamic_shared_limit(kernel);
        return CUDA_SUCCESS;
    case FUNCTION_SHARED_CARVEOUT:
        *value = kernel->shared_carveout;
        return CUDA_SUCCESS;
    case FUNCTION_CLUSTER_WIDTH:
    case FUNCTION_CLUSTER_HEIGHT:
    case FUNCTION_CLUSTER_DEPTH:
        *value = (int)kernel->cluster[attribute - FUNCTION_CLUSTER_WIDTH];
        return CUDA_SUCCESS;
    case FUNCTION_NON_PORTABLE_CLUSTER:
        *value = kernel->non_portable_cluster;
        return CUDA_SUCCESS;
    case FUNCTION_CACHE_MODE:
    case FUNCTION_CLUSTER_MUST_BE_SET:
    case FUNCTION_CLUSTER_POLICY:
        *value = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult get_attribute(int *value, int attribute, const void *handle)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    if (!value)
        return leave(CUDA_ERROR_INVALID_VALUE);
    result = kernel_describe(kernel);
    return leave(result ? result : read_attribute(value, attribute, kernel));
}

/* For the hook, which reports no estimate as a value: the registers that the image's machine code tells. */
API simgpu_counted_registers(int *value, CUfunction handle)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    result = kernel_describe(kernel);
    if (!result && kernel->registers < 0)
        result = CUDA_ERROR_NOT_SUPPORTED;
    if (!result)
        *value = kernel->registers;
    return leave(result);
}

static CUresult set_attribute(const void *handle, int attribute, int value)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    result = kernel_describe(kernel);
    if (result)
        return leave(result);
    int largest_shared = driver.generation->block_shared_bytes - (int)kernel->static_shared_bytes;
    switch (attribute) {
    case FUNCTION_MAX_DYNAMIC_SHARED:
        if (value < 0 || value > largest_shared)
            return leave(CUDA_ERROR_INVALID_VALUE);
        kernel->max_dynamic_shared = value;
        return leave(CUDA_SUCCESS);
    case FUNCTION_SHARED_CARVEOUT:
        if (value < -1 || value > 100)
            return leave(CUDA_ERROR_INVALID_VALUE);
        kernel->shared_carveout = value;
        return leave(CUDA_SUCCESS);
    case FUNCTION_NON_PORTABLE_CLUSTER:
        if (!driver.generation->has_clusters || value < 0 || value > 1)
            return leave(CUDA_ERROR_INVALID_VALUE);
        kernel->non_portable_cluster = value;
        return leave(CUDA_SUCCESS);
    case FUNCTION_CLUSTER_POLICY: /* blocks are placed in one way only */
        return leave(driver.generation->has_clusters ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    default:
        return leave(CUDA_ERROR_INVALID_VALUE);
    }
}

API cuFuncGetAttribute(int *value, int attribute, CUfunction handle)
{
    return get_attribute(value, attribute, handle);
}

API cuFuncSetAttribute(CUfunction handle, int attribute, int value)
{
    return set_attribute(handle, attribute, value);
}

API cuKernelGetAttribute(int *value, int attribute, CUkernel handle, CUdevice device)
{
    return device == 0 ? get_attribute(value, attribute, handle) : CUDA_ERROR_INVALID_DEVICE;
}

API cuKernelSetAttribute(int attribute, int value, CUkernel handle, CUdevice device)
{
    return device == 0 ? set_attribute(handle, attribute, value) : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult check(const void *handle)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    return result ? result : leave(CUDA_SUCCESS);
}

API cuFuncSetCacheConfig(CUfunction handle, unsigned preference)
{
    (void)preference;
    return check(handle);
}

API cuKernelSetCacheConfig(CUkernel handle, unsigned preference, CUdevice device)
{
    (void)preference;
    return device == 0 ? check(handle) : CUDA_ERROR_INVALID_DEVICE;
}

API cuFuncSetSharedMemConfig(CUfunction handle, unsigned bank_size)
{
    (void)bank_size;
    return check(handle);
}

static CUresult get_name(const char **name, const void *handle)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    if (!name)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *name = kernel->name;
    return leave(CUDA_SUCCESS);
}

API cuFuncGetName(const char **name, CUfunction handle)
{
    return get_name(name, handle);
}
API cuKernelGetName(const char **name, CUkernel handle)
{
    return get_name(name, handle);
}

API cuFuncGetModule(CUmodule *module, CUfunction handle)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    if (!module)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *module = kernel->module->handle;
    return leave(CUDA_SUCCESS);
}

static CUresult get_parameter(const void *handle, size_t index, size_t *offset, size_t *size)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    result = kernel_describe(kernel);
    if (result)
        return leave(result);
    if (!offset || index >= kernel->parameter_count)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *offset = kernel->parameters[index].offset;
    if (size)
        *size = kernel->parameters[index].size;
    return leave(CUDA_SUCCESS);
}

API cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size)
{
    return get_parameter(handle, index, offset, size);
}

API cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *size)
{
    return get_parameter(handle, index, offset, size);
}

API cuFuncIsLoaded(int *state, CUfunction handle)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    if (result)
        return result;
    if (!state)
        return leave(CUDA_ERROR_INVALID_VALUE);
    *state = kernel->described;
    return leave(CUDA_SUCCESS);
}

API cuFuncLoad(CUfunction handle)
{
    struct kernel *kernel;
    CUresult result = enter_kernel(handle, &kernel);
    return result ? result : leave(kernel_describe(kernel));
}

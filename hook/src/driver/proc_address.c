/* Our own functions by name, for programs that ask the driver for its functions' addresses. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "real.h"

struct wrapper {
    const char *name;
    void *address;
};

static const struct wrapper wrappers[] = {
#define WRAPPED(name) {#name, (void *)name},
#include "wrapped.def"
#undef WRAPPED
};

/* The hook's function of exactly this exported NAME, or NULL if NAME is the real driver's own. */
static void *wrapper_named(const char *name)
{
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (strcmp(wrappers[i].name, name) == 0)
            return wrappers[i].address;
    return NULL;
}

/* From CUDA 12 on the plain name stands for this function. */
static bool is_instantiate_with_flags(const char *exported, const char *base)
{
    return strcmp(base, "cuGraphInstantiate") == 0 && strcmp(exported, "cuGraphInstantiateWithFlags") == 0;
}

static bool is_form_of(const char *exported, const char *base)
{
    size_t length = strlen(base);
    if (strncmp(exported, base, length) != 0)
        return false;
    const char *suffix = exported + length;
    return *suffix == '\0' || strncmp(suffix, "_v", 2) == 0 || strcmp(suffix, "_ptsz") == 0 ||
           strcmp(suffix, "_ptds") == 0 || is_instantiate_with_flags(exported, base);
}

/* The driver chose an ABI version and a default-stream form; the address it returned tells which. */
static void *wrapper_of_address(const char *base, const void *address)
{
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (is_form_of(wrappers[i].name, base) && real_symbol(wrappers[i].name) == address)
            return wrappers[i].address;
    return NULL;
}

/* A driver may hand out an address that it does not export under any name: then the newest form
 * that the asked CUDA version allows is meant. */
static void *wrapper_by_version(const char *base, int version, uint64_t flags)
{
    static const struct {
        const char *base, *name;
        int since;
    } versions[] = {
        {"cuGetProcAddress", "cuGetProcAddress_v2", 12000},
        {"cuMemAlloc", "cuMemAlloc_v2", 3020},
        {"cuMemAllocPitch", "cuMemAllocPitch_v2", 3020},
        {"cuMemFree", "cuMemFree_v2", 3020},
        {"cuMemAllocHost", "cuMemAllocHost_v2", 3020},
        {"cuMemHostRegister", "cuMemHostRegister_v2", 6050},
        {"cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", 11000},
        {"cuArrayCreate", "cuArrayCreate_v2", 3020},
        {"cuArray3DCreate", "cuArray3DCreate_v2", 3020},
        {"cuModuleGetGlobal", "cuModuleGetGlobal_v2", 3020},
        {"cuCtxCreate", "cuCtxCreate_v2", 3020},
        {"cuCtxCreate", "cuCtxCreate_v3", 11040},
        {"cuCtxCreate", "cuCtxCreate_v4", 12050},
        {"cuCtxDestroy", "cuCtxDestroy_v2", 4000},
        {"cuStreamDestroy", "cuStreamDestroy_v2", 4000},
        {"cuStreamBeginCapture", "cuStreamBeginCapture_v2", 10010},
        {"cuGraphInstantiate", "cuGraphInstantiate_v2", 11000},
        {"cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000},
        {"cuGraphExecUpdate", "cuGraphExecUpdate_v2", 12000},
        {"cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2", 12000},
        {"cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11000},
        {"cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", 11000},
    };
    const char *name = base;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (strcmp(versions[i].base, base) == 0 && version >= versions[i].since)
            name = versions[i].name;
    if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        char per_thread[96];
        snprintf(per_thread, sizeof per_thread, "%s_ptsz", name);
        void *wrapper = wrapper_named(per_thread);
        if (wrapper)
            return wrapper;
    }
    return wrapper_named(name);
}

/* True if the driver exports this address under a form of the name that is not ours to replace. */
static bool is_foreign_form(const char *base, const void *address)
{
    static const char *const suffixes[] = {"",      "_v2",      "_v3",      "_v4",     "_ptsz",
                                           "_ptds", "_v2_ptsz", "_v2_ptds", "_v3_ptsz"};
    char name[128];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, sizeof name, "%s%s", base, suffixes[i]);
        if (!wrapper_named(name) && real_symbol(name) == address)
            return true;
    }
    return false;
}

static void replace_by_wrapper(const char *name, void **address, int version, uint64_t flags)
{
    if (!name || !address || !*address)
        return;
    void *wrapper = wrapper_of_address(name, *address);
    if (!wrapper && !is_foreign_form(name, *address))
        wrapper = wrapper_by_version(name, version, flags);
    if (wrapper)
        *address = wrapper;
}

CUresult cuGetProcAddress(const char *name, void **address, int version, uint64_t flags)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGetProcAddress, name, address, version, flags);
    if (result == CUDA_SUCCESS)
        replace_by_wrapper(name, address, version, flags);
    return result;
}

CUresult cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status)
{
    CUresult result = REAL_OR_NOT_FOUND(cuGetProcAddress_v2, name, address, version, flags, status);
    if (result == CUDA_SUCCESS)
        replace_by_wrapper(name, address, version, flags);
    return result;
}

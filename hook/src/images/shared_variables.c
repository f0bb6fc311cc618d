#include "shared_variables.h"

#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "reasons.h"

/* A library reports its managed variables separately, and its module may report more. */
static CUresult find_in_library(CUlibrary library, const char *name, CUdeviceptr *address, size_t *size)
{
    CUmodule module;
    CUresult result = REAL_OR_NOT_FOUND(cuLibraryGetGlobal, address, size, library, name);
    if (result != CUDA_SUCCESS)
        result = REAL_OR_NOT_FOUND(cuLibraryGetManaged, address, size, library, name);
    if (result != CUDA_SUCCESS && REAL_OR_NOT_FOUND(cuLibraryGetModule, &module, library) == CUDA_SUCCESS)
        result = REAL_OR_NOT_FOUND(cuModuleGetGlobal_v2, address, size, module, name);
    return result;
}

const struct reason *shared_variable(const struct code *code, const char *name, CUdeviceptr *address, size_t *size)
{
    const CUresult result = code->is_library
                                ? find_in_library(code->library, name, address, size)
                                : REAL_OR_NOT_FOUND(cuModuleGetGlobal_v2, address, size, code->module, name);
    return result == CUDA_SUCCESS ? NULL : reason_with(VARIABLE_NOT_SHARED, name);
}

static size_t width_of(enum patch_kind kind)
{
    return kind == PATCH_ABS64 ? sizeof(uint64_t) : sizeof(uint32_t);
}

/* Devices and all hosts that have them are little-endian. */
static void write_value(uint8_t *at, enum patch_kind kind, uint64_t value)
{
    const uint32_t half = (uint32_t)(kind == PATCH_ABS32_HI ? value >> 32 : value);
    if (kind == PATCH_ABS64)
        memcpy(at, &value, sizeof value);
    else
        memcpy(at, &half, sizeof half);
}

const struct reason *shared_patch(const struct kernel_probe *probe, const struct code *code, uint8_t *file, size_t size)
{
    for (size_t i = 0; i < probe->n_patches; i++) {
        const struct patch *patch = &probe->patches[i];
        CUdeviceptr address;
        size_t bytes;
        if (patch->offset > size || size - patch->offset < width_of(patch->kind))
            return reason_with(KERNEL_INFO, "patches bytes beyond the end of the probed kernel");
        const struct reason *reason = shared_variable(code, patch->variable, &address, &bytes);
        if (reason)
            return reason;
        write_value(file + patch->offset, patch->kind, address + patch->addend);
    }
    return NULL;
}

const struct reason *shared_find_constants(const struct kernel_probe *probe, const struct code *code,
                                           struct variant *variant)
{
    variant->constants = calloc(probe->n_constants + 1, sizeof *variant->constants);
    if (!variant->constants)
        return reason(HOST_MEMORY);
    for (size_t i = 0; i < probe->n_constants; i++) {
        const struct constant *constant = &probe->constants[i];
        struct constant_copy *copy = &variant->constants[i];
        size_t from = 0, to = 0;
        const struct reason *reason = shared_variable(code, constant->variable, &copy->from, &from);
        if (reason)
            return reason;
        if (REAL_OR_NOT_FOUND(cuModuleGetGlobal_v2, &copy->to, &to, variant->module, constant->variable) !=
                CUDA_SUCCESS ||
            from != constant->size || to != constant->size)
            return reason_with(VARIABLE_NOT_SHARED, constant->variable);
    }
    return NULL;
}

CUresult shared_copy_constants(const struct kernel_probe *probe, const struct variant *variant, CUstream stream)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < probe->n_constants && result == CUDA_SUCCESS; i++) {
        const struct constant_copy *copy = &variant->constants[i];
        result = REAL_OR_NOT_FOUND(cuMemcpyDtoDAsync_v2, copy->to, copy->from, probe->constants[i].size, stream);
    }
    return result;
}

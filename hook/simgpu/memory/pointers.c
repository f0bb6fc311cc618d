/* Attributes of pointers. */

#include <string.h>

#include "current.h"
#include "memory.h"

API cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    const struct block *block = memory_block(address);
    if (!block)
        return leave(CUDA_ERROR_NOT_FOUND);
    if (base)
        *base = block->address;
    if (bytes)
        *bytes = block->requested;
    return leave(CUDA_SUCCESS);
}

static CUresult write_value(void *target, const void *value, size_t bytes)
{
    memcpy(target, value, bytes);
    return CUDA_SUCCESS;
}

/* `block` is NULL for memory that the driver did not allocate. */
static CUresult describe(void *answer, int attribute, const struct block *block, CUdeviceptr address)
{
    bool needs_block = attribute != POINTER_DEVICE_ORDINAL && attribute != POINTER_IS_MANAGED;
    if (!block && needs_block)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned managed = block && block->use == BLOCK_MANAGED, mapped = 1, unsynchronised = 0;
    unsigned memory_type = MEMORY_DEVICE;
    if (block && block->use == BLOCK_HOST)
        memory_type = MEMORY_HOST;
    bool on_host = block && (block->use == BLOCK_HOST || block->use == BLOCK_MANAGED);
    int ordinal = block ? 0 : -2;
    switch (attribute) {
    case POINTER_CONTEXT: {
        const bool is_of_context = block->use != BLOCK_VARIABLE && block->use != BLOCK_VIRTUAL;
        const struct context *owner = is_of_context ? block->owner : NULL;
        return write_value(answer, &(CUcontext){owner ? owner->handle : NULL}, sizeof(CUcontext));
    }
    case POINTER_MEMORY_TYPE:
        return write_value(answer, &memory_type, sizeof memory_type);
    case POINTER_DEVICE_POINTER:
        return write_value(answer, &address, sizeof address);
    case POINTER_HOST_POINTER:
        return on_host ? write_value(answer, &address, sizeof address) : CUDA_ERROR_INVALID_VALUE;
    case POINTER_SYNC_MEMOPS:
        return write_value(answer, &unsynchronised, sizeof unsynchronised);
    case POINTER_BUFFER_ID:
        return write_value(answer, &block->id, sizeof block->id);
    case POINTER_IS_MANAGED:
        return write_value(answer, &managed, sizeof managed);
    case POINTER_DEVICE_ORDINAL:
        return write_value(answer, &ordinal, sizeof ordinal);
    case POINTER_RANGE_START:
        return write_value(answer, &block->address, sizeof block->address);
    case POINTER_RANGE_SIZE:
        return write_value(answer, &block->requested, sizeof block->requested);
    case POINTER_MAPPED:
        return write_value(answer, &mapped, sizeof mapped);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

API cuPointerGetAttribute(void *answer, int attribute, CUdeviceptr address)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    const struct block *block = memory_block(address);
    if (!answer || !block)
        return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(describe(answer, attribute, block, address));
}

static size_t answer_bytes(int attribute)
{
    switch (attribute) {
    case POINTER_MEMORY_TYPE:
    case POINTER_SYNC_MEMOPS:
    case POINTER_IS_MANAGED:
    case POINTER_DEVICE_ORDINAL:
    case POINTER_MAPPED:
        return 4;
    default:
        return 8;
    }
}

/* Unlike the form for one attribute, this one succeeds for any pointer and answers zeros for what does not apply. */
API cuPointerGetAttributes(unsigned count, const int *wanted, void **answers, CUdeviceptr address)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!count || !wanted || !answers)
        return leave(CUDA_ERROR_INVALID_VALUE);
    const struct block *block = memory_block(address);
    for (unsigned i = 0; i < count && !result; i++) {
        result = describe(answers[i], wanted[i], block, address);
        if (result == CUDA_ERROR_INVALID_VALUE) {
            memset(answers[i], 0, answer_bytes(wanted[i]));
            result = CUDA_SUCCESS;
        }
    }
    return leave(result);
}

/* Host memory that a program registers. Copies need no registration here; kernels do not reach such memory, since the
 * server does not share it, and a device pointer to it is refused. */

#include <stdlib.h>

#include "current.h"

struct range {
    uintptr_t start;
    size_t bytes;
    struct range *next;
};

static struct range *ranges;

static bool overlaps(uintptr_t start, size_t bytes)
{
    for (const struct range *range = ranges; range; range = range->next) {
        if (start < range->start + range->bytes && range->start < start + bytes)
            return true;
    }
    return false;
}

API cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    if (!pointer || !bytes)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (overlaps((uintptr_t)pointer, bytes))
        return leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    struct range *range = malloc(sizeof *range);
    if (!range)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    *range = (struct range){(uintptr_t)pointer, bytes, ranges};
    ranges = range;
    return leave(CUDA_SUCCESS);
}
SAME_AS(cuMemHostRegister, cuMemHostRegister_v2);

API cuMemHostUnregister(void *pointer)
{
    struct context *context;
    CUresult result = enter(&context);
    if (result)
        return result;
    struct range **link = &ranges;
    while (*link && (*link)->start != (uintptr_t)pointer)
        link = &(*link)->next;
    struct range *range = *link;
    if (!range)
        return leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    *link = range->next;
    free(range);
    return leave(CUDA_SUCCESS);
}

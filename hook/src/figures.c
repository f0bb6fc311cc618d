#include "figures.h"

#include <stdio.h>

#include "real.h"

static void number(char text[16], CUresult result, int value)
{
    if (result == CUDA_SUCCESS)
        snprintf(text, 16, "%d", value);
    else
        snprintf(text, 16, "-");
}

static void attribute(char text[16], CUfunction function, int which)
{
    int value = 0;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (function)
        result = REAL_OR_NOT_FOUND(cuFuncGetAttribute, &value, which, function);
    number(text, result, value);
}

void figures_of(CUfunction function, const struct launch *launch, char text[FIGURES_SIZE])
{
    char registers[16], local[16], shared[16], blocks[16];
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    int resident = 0;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    attribute(registers, function, CU_FUNC_ATTRIBUTE_NUM_REGS);
    attribute(local, function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attribute(shared, function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    if (function && threads && threads <= 1024)
        result = REAL_OR_NOT_FOUND(cuOccupancyMaxActiveBlocksPerMultiprocessor, &resident, function, (int)threads,
                                   launch->shared);
    number(blocks, result, resident);
    snprintf(text, FIGURES_SIZE, "registers %s local %s shared %s blocks %s", registers, local, shared, blocks);
}

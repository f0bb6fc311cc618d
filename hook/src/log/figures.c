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

/* A simulated driver estimates the registers of PTX text for programs. An estimate is not a value. */
static void registers_of(char text[16], CUfunction function)
{
    CUresult (*counted)(int *, CUfunction) = NULL;
    *(void **)&counted = real_symbol("simgpu_counted_registers");
    if (!counted || !function) {
        attribute(text, function, CU_FUNC_ATTRIBUTE_NUM_REGS);
        return;
    }
    int value = 0;
    const CUresult result = counted(&value, function);
    number(text, result, value);
}

void figures_of(CUfunction function, const struct launch *launch, char text[FIGURES_SIZE])
{
    char registers[16], local[16], shared[16], blocks[16];
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    int resident = 0;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    registers_of(registers, function);
    attribute(local, function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attribute(shared, function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    if (function && threads && threads <= 1024)
        result = REAL_OR_NOT_FOUND(cuOccupancyMaxActiveBlocksPerMultiprocessor, &resident, function, (int)threads,
                                   launch->shared);
    number(blocks, result, resident);
    snprintf(text, FIGURES_SIZE, "registers %s local %s shared %s blocks %s", registers, local, shared, blocks);
}

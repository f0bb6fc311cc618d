#include "parameters.h"

#include <stdint.h>
#include <stdlib.h>

#include "kernel_info.h"
#include "real.h"
#include "reasons.h"
#include "sampling.h"

/* The number of parameters, for drivers that say (13.1 and later); others refuse the one beyond the last. */
static size_t parameters_count(CUfunction function, CUkernel kernel)
{
    size_t n;
    const CUresult result = kernel ? REAL_OR_NOT_FOUND(cuKernelGetParamCount, kernel, &n)
                                   : REAL_OR_NOT_FOUND(cuFuncGetParamCount, function, &n);
    return result == CUDA_SUCCESS && n < KERNEL_ARGUMENTS_LIMIT ? n : KERNEL_ARGUMENTS_LIMIT;
}

bool parameters_read(CUfunction function, CUkernel kernel, struct parameter **list, size_t *n)
{
    if (kernel ? !real()->cuKernelGetParamInfo : !real()->cuFuncGetParamInfo)
        return false;
    struct parameter *parameters = calloc(KERNEL_ARGUMENTS_LIMIT, sizeof *parameters);
    const size_t count = parameters_count(function, kernel);
    CUresult result = CUDA_SUCCESS;
    for (*n = 0; parameters && *n < count; ++*n) {
        struct parameter *p = &parameters[*n];
        result = kernel ? REAL_OR_NOT_FOUND(cuKernelGetParamInfo, kernel, *n, &p->offset, &p->size)
                        : REAL_OR_NOT_FOUND(cuFuncGetParamInfo, function, *n, &p->offset, &p->size);
        if (result != CUDA_SUCCESS)
            break;
    }
    if (parameters && (result == CUDA_ERROR_INVALID_VALUE || (result == CUDA_SUCCESS && *n < KERNEL_ARGUMENTS_LIMIT))) {
        struct parameter *fitting = realloc(parameters, (*n + 1) * sizeof *parameters); /* kernels are many */
        *list = fitting ? fitting : parameters;
        return true;
    }
    free(parameters);
    return false;
}

/* As arguments_fill adds them. */
static size_t added(const struct kernel_probe *probe, const struct variant *variant)
{
    size_t n = probe->n_globals + (probe->sampled || variant->sampled ? SAMPLING_PARAMETERS : 0);
    n += probe->resident;
    n += probe->reads_allocations;
    for (size_t i = 0; i < probe->n_maps; i++)
        n += (probe->maps[i].layout != MAP_COUNTS) + (probe->maps[i].cap == 0);
    return n;
}

static const struct reason *compared(const struct parameter *probed, size_t n, const struct kernel *kernel,
                                     size_t expected)
{
    char texts[2][REASON_NUMBER_SIZE];
    if (n != expected)
        return reason_with(PARAMETERS_ADDED, reason_number(texts[0], n), reason_number(texts[1], expected));
    for (size_t i = 0; i < n; i++) {
        const struct parameter *before = &kernel->parameters[i];
        const bool is_added = i >= kernel->n_parameters;
        if (is_added
                ? probed[i].size != sizeof(uint64_t)
                : kernel->parameters_known && (probed[i].offset != before->offset || probed[i].size != before->size))
            return reason_with(PARAMETER_MOVED, reason_number(texts[0], i));
    }
    return NULL;
}

const struct reason *parameters_agree(const struct kernel_probe *probe, const struct variant *variant)
{
    struct parameter *probed;
    size_t n;
    if (!parameters_read(variant->function, NULL, &probed, &n))
        return NULL;
    const struct kernel *kernel = probe->kernel;
    const struct reason *reason = compared(probed, n, kernel, kernel->n_parameters + added(probe, variant));
    free(probed);
    return reason;
}

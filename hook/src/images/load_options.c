#include "load_options.h"

#include <stdbool.h>
#include <stddef.h>

/* CUjit_option: numbers that change the code. The others are buffers of messages, the time that it took, addresses,
 * and how caches are used. */
static const int relevant[] = {
    0,              /* MAX_REGISTERS */
    1,              /* THREADS_PER_BLOCK */
    7,              /* OPTIMIZATION_LEVEL */
    9,              /* TARGET */
    11,             /* GENERATE_DEBUG_INFO */
    13,             /* GENERATE_LINE_INFO */
    16,             /* FAST_COMPILE */
    20, 21, 22, 23, 24, /* LTO, FTZ, PREC_DIV, PREC_SQRT, FMA */
    29, 30,         /* OPTIMIZE_UNUSED_DEVICE_VARIABLES, POSITION_INDEPENDENT_CODE */
    31, 32, 33,     /* MIN_CTA_PER_SM, MAX_THREADS_PER_BLOCK, OVERRIDE_DIRECTIVE_VALUES */
};

static bool is_relevant(int option)
{
    for (size_t i = 0; i < sizeof relevant / sizeof *relevant; i++)
        if (relevant[i] == option)
            return true;
    return false;
}

/* Values are 32 bits wide, in the low half of a pointer. The order of options does not matter. */
uint64_t load_options_hash(unsigned int n, const int *options, void *const *values)
{
    uint64_t hash = 0;
    for (unsigned int i = 0; i < n && options && values; i++)
        if (is_relevant(options[i]))
            hash += (((uint64_t)(unsigned)options[i] << 32 | (uint32_t)(uintptr_t)values[i]) + 1) * 0x9e3779b97f4a7c15u;
    return hash;
}

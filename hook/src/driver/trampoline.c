#include "trampoline.h"

#include <stdatomic.h>

#include "real.h"

/* Stands in for a function that this driver lacks. */
static CUresult missing_function(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

void *trampoline_lookup(size_t index)
{
    void *address = real_symbol(trampoline_names[index]);
    if (!address)
        address = (void *)(uintptr_t)missing_function;
    atomic_store_explicit(&trampoline_table[index], address, memory_order_release);
    return address;
}

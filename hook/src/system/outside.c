#include "outside.h"

#include <stdatomic.h>

static atomic_int outside;

void outside_begin(void)
{
    atomic_fetch_add_explicit(&outside, 1, memory_order_relaxed);
}

void outside_end(void)
{
    atomic_fetch_sub_explicit(&outside, 1, memory_order_relaxed);
}

bool outside_any(void)
{
    return atomic_load(&outside) > 0;
}

void outside_reset(void)
{
    atomic_store(&outside, 0);
}

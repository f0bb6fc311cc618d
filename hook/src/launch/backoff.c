#include "backoff.h"

/* The finishing step of SplitMix64: neighbouring numbers get unrelated values. */
static uint64_t scatter(uint64_t value)
{
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

bool backoff_due(struct backoff *backoff, uint64_t n, uint64_t seed, unsigned divisor)
{
    uint64_t next = atomic_load_explicit(&backoff->next, memory_order_relaxed);
    if (n < next)
        return false;
    const uint64_t step = 1 + n / divisor;
    return atomic_compare_exchange_strong_explicit(&backoff->next, &next, n + step + scatter(seed ^ n) % step,
                                                   memory_order_relaxed, memory_order_relaxed);
}

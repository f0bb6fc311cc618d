#include "clock.h"

static uint64_t zero_real, zero_monotonic;

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void clock_start(void)
{
    zero_real = read_clock(CLOCK_REALTIME);
    zero_monotonic = read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_now(void)
{
    return zero_real + (read_clock(CLOCK_MONOTONIC) - zero_monotonic);
}

uint64_t clock_coarse(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t clock_zero(void)
{
    return zero_real;
}

struct timespec clock_deadline(unsigned milliseconds)
{
    uint64_t at = read_clock(CLOCK_MONOTONIC) + (uint64_t)milliseconds * 1000000u;
    return (struct timespec){.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)};
}

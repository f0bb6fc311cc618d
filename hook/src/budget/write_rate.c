#include "write_rate.h"

#include <stdatomic.h>
#include <time.h>

#include "control.h"

/* Less than SEEN_BYTES tell nothing: they may be on their way to the disk. SEEN_PART: half of what the disk carried is
 * left to the program, which may write to the same disk. */
enum { SECOND = 1000000000, SEEN_BYTES = 64 << 20, SEEN_PART = 2 };

static _Atomic uint64_t seen_bytes, seen_nanoseconds;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

/* Bytes per second. */
static uint64_t rate(void)
{
    const uint64_t limit = atomic_load(&control->write_rate), bytes = atomic_load(&seen_bytes);
    const uint64_t nanoseconds = atomic_load(&seen_nanoseconds);
    if (limit == CONTROL_NO_LIMIT || bytes < SEEN_BYTES || !nanoseconds)
        return limit;
    const double carried = (double)bytes / (double)nanoseconds * SECOND / SEEN_PART;
    return carried < (double)limit ? (uint64_t)carried : limit;
}

static uint64_t time_for(uint64_t bytes)
{
    const uint64_t allowed = rate();
    return allowed && allowed != CONTROL_NO_LIMIT ? (uint64_t)((double)bytes / (double)allowed * SECOND) : 0;
}

bool write_rate_is_over(void)
{
    return !rate() || atomic_load(&control->written_until) > now() + SECOND;
}

void write_rate_use(uint64_t bytes)
{
    const uint64_t time = time_for(bytes), begin = now();
    uint64_t until = atomic_load(&control->written_until);
    while (!atomic_compare_exchange_weak(&control->written_until, &until, (until > begin ? until : begin) + time))
        ;
}

void write_rate_return(uint64_t bytes)
{
    const uint64_t time = time_for(bytes);
    uint64_t until = atomic_load(&control->written_until);
    while (!atomic_compare_exchange_weak(&control->written_until, &until, until > time ? until - time : 0))
        ;
}

/* The newest count most. */
void write_rate_saw(uint64_t bytes, uint64_t nanoseconds)
{
    if (atomic_load(&seen_bytes) > 2ull * SEEN_BYTES) {
        atomic_store(&seen_bytes, atomic_load(&seen_bytes) / 2);
        atomic_store(&seen_nanoseconds, atomic_load(&seen_nanoseconds) / 2);
    }
    atomic_fetch_add(&seen_bytes, bytes);
    atomic_fetch_add(&seen_nanoseconds, nanoseconds);
}

#include "deadline.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "settings.h"

/* A look is a system call; the waits that ask are loops of a few hundred microseconds. */
enum { LOOK_MILLISECONDS = 20 };
#define NS_PER_MS 1000000ull

static atomic_uint_fast64_t asked; /* when the program was asked to end; 0: it was not */
static atomic_uint_fast64_t looked;

void deadline_shorten(void)
{
    uint_fast64_t never = 0;
    atomic_compare_exchange_strong(&asked, &never, clock_now());
}

/* The run's page tells it without a system call, which a sandbox of the program may forbid. */
static void look(uint64_t now)
{
    if (atomic_load_explicit(&control->ending, memory_order_relaxed))
        deadline_shorten();
    if (control_is_shared() || !settings.ending || now < atomic_load(&looked) + LOOK_MILLISECONDS * NS_PER_MS)
        return;
    atomic_store(&looked, now);
    if (access(settings.ending, F_OK) == 0)
        deadline_shorten();
}

bool deadline_passed(uint64_t began, unsigned milliseconds)
{
    const uint64_t now = clock_now();
    if (!atomic_load(&asked))
        look(now);
    const uint64_t hurried = atomic_load(&asked);
    if (now > began + milliseconds * NS_PER_MS)
        return true;
    return hurried && now > (hurried > began ? hurried : began) + HURRIED_MILLISECONDS * NS_PER_MS;
}

void deadline_reset(void)
{
    atomic_store(&asked, 0);
    atomic_store(&looked, 0);
}

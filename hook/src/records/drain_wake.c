#include "drain_wake.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

static sem_t wake;
static atomic_bool running;
static atomic_bool resting; /* asleep until woken: nothing is pending */

void drain_wake(void)
{
    atomic_store(&resting, false);
    if (atomic_load(&running))
        sem_post(&wake);
}

void drain_expect(void)
{
    if (atomic_load_explicit(&resting, memory_order_relaxed))
        drain_wake();
}

void drain_wake_start(void)
{
    sem_init(&wake, 0, 0);
    atomic_store(&running, true);
}

void drain_wake_stop(void)
{
    atomic_store(&running, false);
}

bool drain_is_running(void)
{
    return atomic_load(&running);
}

void drain_rest(void)
{
    atomic_store(&resting, true);
}

static void sleep_for(unsigned microseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)microseconds * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (sem_timedwait(&wake, &until) != 0 && errno == EINTR)
        ;
}

void drain_sleep(unsigned microseconds)
{
    if (microseconds)
        sleep_for(microseconds);
    else
        while (sem_wait(&wake) != 0)
            ;
}

#include "hook_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* OFF is for good; WAITING: no kernel has been launched yet; ON: there is a trace; ENDING: its last
 * records are being saved, and later launches are none of its business. */
enum state { OFF, WAITING, ON, ENDING };

static _Atomic(enum state) state;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool (*begin_trace)(void);

bool hook_active(void)
{
    return atomic_load_explicit(&state, memory_order_relaxed) != OFF;
}

bool hook_launching(void)
{
    enum state now = atomic_load_explicit(&state, memory_order_acquire);
    if (now != WAITING)
        return now == ON;
    pthread_mutex_lock(&mutex);
    if (atomic_load(&state) == WAITING)
        atomic_store(&state, begin_trace() ? ON : OFF);
    now = atomic_load(&state);
    pthread_mutex_unlock(&mutex);
    return now == ON;
}

bool hook_is_on(void)
{
    return atomic_load(&state) == ON;
}

void hook_state_wait(bool (*begin)(void))
{
    begin_trace = begin;
    atomic_store(&state, WAITING);
}

bool hook_state_end(void)
{
    enum state on = ON;
    return atomic_compare_exchange_strong(&state, &on, ENDING);
}

bool hook_state_is_ending(void)
{
    return atomic_load(&state) == ENDING;
}

void hook_state_off(void)
{
    atomic_store(&state, OFF);
}

void hook_state_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    if (atomic_load(&state) != WAITING)
        atomic_store(&state, OFF);
}

#define _GNU_SOURCE
#include "hook_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* COPIED: this is a child, and has not noticed yet. OFF is for good; WAITING: no kernel has been launched yet; ON:
 * there is a trace; ENDING: its last records are being saved, and later launches are none of its business. */
enum state { COPIED, OFF, WAITING, ON, ENDING };

/* In memory that the system fills with zeros in a child, no matter who makes it: a program may do so by a system call of its
 * own, which no handler of fork sees. */
static _Atomic(enum state) first = OFF, *state = &first;
static _Atomic(enum state) last = OFF; /* what it was, and still is in a child */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool (*begin_trace)(void);
static void (*begin_anew)(void);

static void become(enum state next)
{
    atomic_store(&last, next);
    atomic_store(state, next);
}

/* Another thread of the child may notice first: until that one is done, the child is not traced. */
static void notice_copy(void)
{
    enum state copied = COPIED;
    if (atomic_compare_exchange_strong(state, &copied, OFF))
        begin_anew();
}

bool hook_active(void)
{
    if (atomic_load_explicit(state, memory_order_relaxed) == COPIED)
        notice_copy();
    return atomic_load_explicit(state, memory_order_relaxed) != OFF;
}

bool hook_launching(void)
{
    enum state now = atomic_load_explicit(state, memory_order_acquire);
    if (now != WAITING)
        return now == ON;
    pthread_mutex_lock(&mutex);
    if (atomic_load(state) == WAITING)
        become(begin_trace() ? ON : OFF);
    now = atomic_load(state);
    pthread_mutex_unlock(&mutex);
    return now == ON;
}

bool hook_is_on(void)
{
    return atomic_load(state) == ON;
}

void hook_state_wait(bool (*begin)(void), void (*in_child)(void))
{
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    begin_trace = begin;
    begin_anew = in_child;
    if (page != MAP_FAILED && madvise(page, size, MADV_WIPEONFORK) == 0)
        state = page;
    become(WAITING);
}

bool hook_state_end(void)
{
    enum state on = ON;
    if (!atomic_compare_exchange_strong(state, &on, ENDING))
        return false;
    atomic_store(&last, ENDING);
    return true;
}

bool hook_state_is_ending(void)
{
    return atomic_load(state) == ENDING;
}

void hook_state_off(void)
{
    become(OFF);
}

void hook_state_resume(void)
{
    become(ON);
}

void hook_state_reset(void)
{
    pthread_mutex_init(&mutex, NULL);
    become(atomic_load(&last) == WAITING ? WAITING : OFF);
}

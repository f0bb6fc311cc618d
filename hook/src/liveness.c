#define _GNU_SOURCE
#include "liveness.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "threads.h"

enum { LOOK_MILLISECONDS = 10 };

struct thread {
    atomic_int id; /* 0: not begun */
    atomic_uint marks;
    atomic_bool idle;
};

static struct thread threads[LIVENESS_THREADS];
static atomic_int outside; /* threads that wait for the disk or the GPU */

void liveness_begin(enum liveness_thread thread)
{
    atomic_store(&threads[thread].id, (int)gettid());
}

void liveness_mark(enum liveness_thread thread, bool idle)
{
    atomic_store_explicit(&threads[thread].idle, idle, memory_order_relaxed);
    atomic_fetch_add_explicit(&threads[thread].marks, 1, memory_order_relaxed);
}

void liveness_outside(void)
{
    atomic_fetch_add_explicit(&outside, 1, memory_order_relaxed);
}

void liveness_inside(void)
{
    atomic_fetch_sub_explicit(&outside, 1, memory_order_relaxed);
}

/* Since when nothing is known of it but that it sleeps; NOW if it does not. */
static uint64_t stuck_since(struct liveness *seen, int i, uint64_t now)
{
    const unsigned marks = atomic_load(&threads[i].marks);
    const int id = atomic_load(&threads[i].id);
    const bool same = seen->since[i] && marks == seen->marks[i];
    seen->marks[i] = marks;
    /* one that is ready to run, on a busy machine, does not wait for a lock */
    if (!id || atomic_load(&threads[i].idle) || thread_state(id) != 'S' || !same)
        seen->since[i] = now;
    return seen->since[i];
}

bool liveness_is_stuck(struct liveness *seen, bool same)
{
    const uint64_t now = clock_now();
    bool stuck = false;
    if (now < seen->looked + LOOK_MILLISECONDS * 1000000ull)
        return false;
    seen->looked = now;
    for (int i = 0; i < LIVENESS_THREADS; i++) {
        if (!same && atomic_load(&outside) > 0)
            seen->since[i] = 0;
        else if (now - stuck_since(seen, i, now) >= LIVENESS_MILLISECONDS * 1000000ull)
            stuck = true;
    }
    return stuck;
}

void liveness_reset(void)
{
    memset(threads, 0, sizeof threads);
    atomic_store(&outside, 0);
}

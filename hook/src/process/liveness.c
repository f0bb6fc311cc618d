#include "liveness.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "outside.h"
#include "own_file.h"
#include "threads.h"

/* Each look reads files of /proc, which costs some microseconds per thread. */
enum { LOOK_MILLISECONDS = 10, CALL_BYTES = 64 };

struct thread {
    struct own_file call; /* what tells the system call that it is in */
    struct own_file state; /* what tells its state; opened early: code that ends the process may not open files */
    atomic_bool begun;
    atomic_uint marks;
    atomic_bool idle;
};

static struct thread threads[LIVENESS_THREADS];

void liveness_begin(enum liveness_thread thread)
{
    own_file_take(&threads[thread].state, thread_state_open());
    own_file_take(&threads[thread].call, open("/proc/thread-self/syscall", O_RDONLY | O_CLOEXEC));
    atomic_store(&threads[thread].begun, true);
}

void liveness_mark(enum liveness_thread thread, bool idle)
{
    atomic_store_explicit(&threads[thread].idle, idle, memory_order_relaxed);
    atomic_fetch_add_explicit(&threads[thread].marks, 1, memory_order_relaxed);
}

/* Since when nothing is known of it but that it sleeps; NOW if it does not. */
static uint64_t stuck_since(struct liveness *seen, int i, uint64_t now)
{
    const unsigned marks = atomic_load(&threads[i].marks);
    const bool same = seen->since[i] && marks == seen->marks[i];
    seen->marks[i] = marks;
    /* one that is ready to run, on a busy machine, does not wait for a lock */
    if (!atomic_load(&threads[i].begun) || atomic_load(&threads[i].idle) || !same ||
        thread_state_read(own_file_number(&threads[i].state)) != 'S')
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
        if (!same && outside_any())
            seen->since[i] = 0;
        else if (now - stuck_since(seen, i, now) >= LIVENESS_MILLISECONDS * 1000000ull)
            stuck = true;
    }
    return stuck;
}

/* Locks and semaphores are made of this call. */
static bool is_in_futex(int i)
{
    char text[CALL_BYTES] = "";
    const int file = own_file_number(&threads[i].call);
    if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0)
        return !outside_any();
    return strtol(text, NULL, 10) == SYS_futex;
}

bool liveness_waits_for_lock(struct liveness *seen)
{
    const uint64_t now = clock_now();
    bool waits = false;
    if (now < seen->looked + LOOK_MILLISECONDS * 1000000ull)
        return false;
    seen->looked = now;
    for (int i = 0; i < LIVENESS_THREADS; i++) {
        const uint64_t since = stuck_since(seen, i, now);
        if (!is_in_futex(i))
            seen->since[i] = now;
        else
            waits = waits || now - since >= LIVENESS_MILLISECONDS * 1000000ull;
    }
    return waits;
}

void liveness_reset(void)
{
    for (int i = 0; i < LIVENESS_THREADS; i++) {
        if (atomic_load(&threads[i].begun)) {
            own_file_close(&threads[i].state);
            own_file_close(&threads[i].call);
        }
        atomic_store(&threads[i].begun, false);
        atomic_store(&threads[i].marks, 0);
        atomic_store(&threads[i].idle, false);
    }
    outside_reset();
}

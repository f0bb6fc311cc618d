/* Progress of our threads, as one that ends the process sees it: the thread that it interrupted, in a handler of
 * a signal, may hold a lock that they wait for, and never lets go. */
#ifndef TUI_PROBE_LIVENESS_H
#define TUI_PROBE_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

enum liveness_thread { LIVENESS_DRAIN, LIVENESS_WRITER, LIVENESS_THREADS };

/* The calling thread is this one from now on. */
void liveness_begin(enum liveness_thread thread);

/* It has got on; IDLE: it waits for work. */
void liveness_mark(enum liveness_thread thread, bool idle);

/* Observations of a thread that waits; LOOKED and NO_LAUNCH begin with its wait, the rest with zeros. */
struct liveness {
    uint64_t looked, since[LIVENESS_THREADS];
    uint64_t no_launch; /* when records last waited for no launch */
    unsigned marks[LIVENESS_THREADS];
};

/* True if a thread has slept for LIVENESS_MILLISECONDS, in which it neither got on nor waited for work, nor, unless
 * SAME, had anything to wait for but a lock. SAME: the calling thread was interrupted inside the driver or the hook, so
 * that calls of the driver may wait for it, too. To be called every millisecond or so; safe in a handler of a
 * signal. */
enum { LIVENESS_MILLISECONDS = 200 };
bool liveness_is_stuck(struct liveness *seen, bool same);

/* True if one has waited for a lock as long, which a stopped thread may have: what waits for the GPU or the disk does
 * not count. */
bool liveness_waits_for_lock(struct liveness *seen);

void liveness_reset(void);

#endif

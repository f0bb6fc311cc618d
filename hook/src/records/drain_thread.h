/* The draining thread: it does in each round what others have asked of it, and drains what is sealed. */
#ifndef TUI_PROBE_DRAIN_THREAD_H
#define TUI_PROBE_DRAIN_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>

struct claim;

enum { TIMES_MILLISECONDS = 500 }; /* that a flush waits for times only: a sample may be lost, a record may not */

/* Tickets are counted up; one is done once the other number has reached it. */
extern struct drain_requests {
    atomic_uint flush_asked, flush_done;
    atomic_uint release_asked, release_done; /* unused memory is to be freed */
    atomic_uint hurried;                     /* threads of the program that wait for a context to be drained */
    atomic_bool finishing;                   /* the final lines are written after the next flush */
    atomic_bool given_up;                    /* launches are not waited for any more */
    _Atomic(struct claim *) left_claim; /* of the launch whose thread ends the process in a handler; NULL: none */
} drain_requests;

/* The thread calls LAST_WORDS when the flush of the program's end is done. */
bool drain_thread_start(void (*write_final_lines)(void));

#endif

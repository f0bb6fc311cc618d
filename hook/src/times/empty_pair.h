/* Two events on a stream, and what they show next to the time of the kernel between them.
 *
 * That is what the device needs for the events, to start a kernel and to see its end. It is measured once per
 * context, on a stream of tui-probe, around a kernel that does nothing, whose own time is known; without one, where the
 * driver compiles no PTX, around nothing at all, which leaves out about 1.5 us of starting and ending. The pairs are
 * queued behind work that takes longer than queueing them, since on an idle device one would time the host's calls
 * instead. They are queued several times: those of a round may all have waited for kernels of the program. */
#ifndef TUI_PROBE_EMPTY_PAIR_H
#define TUI_PROBE_EMPTY_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

struct event_pair {
    CUevent start, end;
};

/* Makes the events in the current context unless they are there. */
bool event_pair_make(struct event_pair *pair);

/* Milliseconds between the two, which are done. False if the driver does not say. */
bool event_pair_elapsed(const struct event_pair *pair, float *milliseconds);

enum { EMPTY_PAIRS = 9 }; /* some may wait for the host, or for kernels of the program on other streams */

struct empty_pair {
    enum { EMPTY_NOT_ASKED, EMPTY_ASKED, EMPTY_KNOWN } state;
    CUstream stream;
    void *work;         /* pinned memory that the pairs were queued behind; NULL: none */
    CUfunction nothing; /* a kernel; NULL without */
    int rounds;
    double nanoseconds; /* the least so far */
    struct event_pair pairs[EMPTY_PAIRS];
};

/* True if it is known; asks for it, in the current context, without waiting. Where the driver refuses it is 0. */
bool empty_pair_known(struct empty_pair *empty);

/* Asks for it and waits a little, in the current context: before the first launch the device is idle. */
void empty_pair_measure(struct empty_pair *empty);

/* Frees the memory that is needed no more, in the current context. */
void empty_pair_free(struct empty_pair *empty);

#endif

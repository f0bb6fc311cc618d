/* Executables: graphs that were instantiated, how often they were replayed, and the probed copy of each.
 *
 * The program's graph and executable are its own. Next to them there is a clone of the graph, made when the
 * executable is, and once a replay is to be probed a second executable, of the clone, whose kernels are then
 * exchanged. The program calls nothing on one executable at a time from several threads; the lock guards the probed
 * copies, which others may take back. */
#ifndef TUI_PROBE_EXECUTABLE_H
#define TUI_PROBE_EXECUTABLE_H

#include "graph.h"
#include "graph_times.h"

/* No stream of the program. */
#define STREAM_GONE ((CUstream) ~(uintptr_t)0)

struct executable {
    CUgraphExec handle;
    uint32_t id; /* in order of instantiation */
    CUcontext context;
    unsigned long long flags; /* that it was instantiated with */
    struct graph *graph;      /* NULL: the driver does not say what is in it */
    struct graph_times *times;

    atomic_uint_fast64_t replays;
    uint64_t logged, logged_at; /* replays that the log has, and the time of its last line */
    uint64_t generation;    /* of the switch */
    uint64_t begun;         /* replays before the schedule began anew */
    struct backoff probes;
    unsigned extras; /* replays that were due because one before had no room for all nodes */

    const struct reason *refused; /* why it has no probed copy; NULL: it may have one */
    const struct reason *passed;  /* last reason in the log for a due replay without a probe */
    CUgraph clone;    /* NULL: there is none */
    CUgraphExec probed_copy; /* NULL: there is none now */
    struct graph_clock *clock; /* what times the kernels of the probed copy; NULL: nothing does */
    uint64_t used;    /* when it was last, by the count of uses */
    size_t window;    /* the kernel node that the next probed replay begins with */

    bool updated;     /* since it was instantiated: the next replay may be the only one that is as the clone is */
    bool awaited;     /* a hook thread makes the probed copy */

    bool launched;
    _Atomic(CUstream) stream; /* of the last replay; STREAM_GONE once that is destroyed, by any thread */
    bool probed_copy_last;           /* that was the probed copy's, and the event is behind it */
    CUevent event;
};

/* The executable of a handle, or NULL. Takes no lock. */
struct executable *executables_find(CUgraphExec handle);

/* A new one, of a graph that was instantiated with FLAGS. NULL without memory. */
struct executable *executables_add(CUgraphExec handle, CUgraph graph, unsigned long long flags);

/* Before it is destroyed; frees it. */
void executables_remove(struct executable *executable);

/* Its nodes are those of GRAPH from now on, which may have become others. */
void executable_read(struct executable *executable, CUgraph graph);

/* Calls VISIT for each. */
void executables_each(void (*visit)(struct executable *executable, const void *argument), const void *argument);

/* The stream is about to be destroyed: another one may get its handle, and is not behind what it did. */
void executables_leave_stream(CUstream stream);

void executables_reset(void);

#endif

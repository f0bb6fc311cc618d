/* Pairs of events around launches, and the hook thread that reads them.
 *
 * Each context has a bounded number of pairs. A launch takes one without waiting, or is not timed; the draining thread
 * logs the time between the two events once both are done, less what a pair with nothing in between shows there. */
#ifndef TUI_PROBE_TIMERS_H
#define TUI_PROBE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "empty_pair.h"

struct graph_times;
struct kernel;
struct shape_group;
struct timer;

/* The origin of a timed launch, and how many launches, itself included, it stands for; or a replay of a graph. */
struct timed_launch {
    struct shape_group *group;           /* NULL for a replay */
    struct graph_times *graph; /* NULL for a launch */
    uint64_t number, weight;
};

/* A pair of the current context; NULL if none is free, or the driver refuses one. */
struct timer *timers_take(void);

/* Before and after the driver's call that launches; STREAM has the per-thread default stream spelled out. A launch that
 * failed may be followed by another one, which is timed in its place. */
void timer_start(struct timer *timer, CUstream stream);
void timer_stop(struct timer *timer, CUstream stream, bool probed, CUresult result);

/* The launch is over: its time is waited for if it was timed, else the pair is free again. Accepts NULL. */
void timer_give(struct timer *timer, const struct timed_launch *launch);

/* A kernel in a replay of a graph, between events that the replay has recorded. */
struct timed_node {
    struct event_pair events;
    struct timed_launch launch;
    bool probed;
};

/* Times more that are waited for, which other threads read. */
void timers_expect(int more);

/* Logs those times. False if it is not yet known, in the current context, what a pair of events shows next to them. */
bool timers_tell(const struct timed_node *nodes, size_t n);

/* A launch that its device has begun and not ended; LAUNCHED by the host at that time. */
struct timed_running {
    const struct kernel *kernel;
    uint64_t number, launched;
};

/* Finds up to MOST launches that run, of those launched before BEFORE. Returns how many. */
size_t timers_running(struct timed_running *running, size_t most, uint64_t before);

/* For the draining thread: logs what is done. */
void timers_collect(void);

/* The same, where the program lacks memory: frees what is needed no more. */
void timers_free_memory(void);

/* True if times are waited for. */
bool timers_pending(void);

/* True if times of CONTEXT are. */
bool timers_pending_in(CUcontext context);

/* CONTEXT may be about to go: its times are waited for no longer, and its handle leads to its pairs no longer. */
void timers_leave(CUcontext context);

/* It is GONE, and its events with it; or it is not, and has its pairs again. */
void timers_settle(CUcontext context, bool gone);

void timers_reset(void);

#endif

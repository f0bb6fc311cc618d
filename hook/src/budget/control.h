/* The control page: one page of memory that all processes of a run share, and those who look at it. It holds the switch
 * and the budgets; `tui-probe help control-page` describes it. A process outside of any run has a page of its own. */
#ifndef TUI_PROBE_CONTROL_H
#define TUI_PROBE_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_MAGIC "tuiprobe"
enum { CONTROL_VERSION = 1, CONTROL_BYTES = 4096, CONTROL_LINE = 64, CONTROL_PROCESSES = 32 };

/* The limit of a budget that has none. */
#define CONTROL_NO_LIMIT UINT64_MAX

/* An amount that a run may use, and what it has used. */
struct control_budget {
    _Atomic uint64_t limit, used;
    _Atomic uint64_t refused; /* how often something found no room */
};

/* A process of the run: what it has reserved and not yet written. Where it was killed, others give that back. */
struct control_process {
    _Atomic uint64_t pid; /* 0: no one's */
    _Atomic uint64_t bytes, files;
};

/* Fields that launches read are on a cache line of their own: the others are written often. */
struct control {
    char magic[8];
    uint64_t version;
    uint64_t launcher; /* its process id; 0: none */
    _Atomic uint64_t on; /* 0: launches run unprobed */
    _Atomic uint64_t turned_on; /* how often the switch was turned on: schedules start anew */
    _Atomic uint64_t shares; /* 1: no launch and no kernel takes more than its share; 0: only the totals hold */
    _Atomic uint64_t only_probe; /* launches have this one of the run's probes, from 1; 0: they take turns */
    _Atomic uint64_t ending; /* signals that have asked the run to end */
    struct control_budget trace_bytes; /* disk blocks of all that the run leaves, in bytes */
    struct control_budget result_files; /* refused: launches */
    struct control_budget log_bytes; /* of event.log; refused: lines */
    _Atomic uint64_t over_share; /* launches that were refused for their share only */
    _Atomic uint64_t launcher_bytes; /* of trace_bytes: what the launcher wrote: only it stores this */
    _Atomic uint64_t write_rate; /* bytes per second of results, where launches are sampled */
    _Atomic uint64_t written_until; /* when what was reserved is written at that rate: nanoseconds of CLOCK_MONOTONIC */
    _Atomic uint64_t over_rate; /* launches that were refused for that */
    uint64_t reserved[10];
    struct control_process processes[CONTROL_PROCESSES]; /* more than these count, and are not given back */
};

_Static_assert(offsetof(struct control, trace_bytes) == CONTROL_LINE, "the switch has a cache line of its own");
_Static_assert(sizeof(struct control) <= CONTROL_BYTES, "it is one page");

extern struct control *control;

/* Causes for launches of this process to run unprobed while the switch of the run is on: bits of control_closed. */
enum control_gate { CONTROL_CAPTURE_RANGE = 1 };

extern atomic_uint control_closed;
extern atomic_uint control_opened; /* how often this process opened the last of its gates */

/* Maps the page of the run, or makes one. False: the run's cannot be used, and this process counts only. */
bool control_start(void);

/* True if that is the page of the run, which the launcher writes to. */
bool control_is_shared(void);

/* Opens or closes a gate of this process. */
void control_gate(enum control_gate gate, bool open);

/* True if launches may be probed. */
static inline bool control_is_on(void)
{
    return atomic_load_explicit(&control->on, memory_order_relaxed) != 0 &&
           atomic_load_explicit(&control_closed, memory_order_relaxed) == 0;
}

/* Another number each time that launches may be probed again. */
static inline uint64_t control_generation(void)
{
    return atomic_load_explicit(&control->turned_on, memory_order_relaxed) +
           atomic_load_explicit(&control_opened, memory_order_relaxed);
}

/* The rest of a budget; CONTROL_NO_LIMIT if it has no limit. */
uint64_t control_left(const struct control_budget *budget);

/* Takes AMOUNT, if so much is left. */
bool control_take(struct control_budget *budget, uint64_t amount);

/* Takes it whether there is so much or not: it is used already. */
void control_use(struct control_budget *budget, uint64_t amount);

void control_return(struct control_budget *budget, uint64_t amount);

/* Notes that this process has reserved BYTES and FILES that are to be given back if it is killed, or with negative
 * numbers that they are written or given back. */
void control_hold(int64_t bytes, int64_t files);

/* Gives back what processes that are no more had reserved. Looks once a second at most. */
void control_reclaim(void);

/* In a forked child, which holds nothing. */
void control_reset(void);

/* True if lines of calls that a program makes often still go into event.log. */
bool control_log_is_open(void);

/* True if lines that sum up others, and those of new kernels, still do: an eighth more is kept for them. */
bool control_log_has_reserve(void);

/* The rest of the trace's budget for anything but event.log, which keeps a part: a full trace can still say why. */
uint64_t control_left_without_log(void);

#endif

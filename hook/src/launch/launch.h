/* One launch as the program asked for it, no matter what function it used. */
#ifndef TUI_PROBE_LAUNCH_H
#define TUI_PROBE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "kernel.h"
#include "timers.h"

/* LAUNCH_GRID: with what was set on the function before. */
enum launch_form { LAUNCH_KERNEL, LAUNCH_COOPERATIVE, LAUNCH_EX, LAUNCH_GRID };

struct launch {
    enum launch_form form;
    bool replayed;        /* a node of a graph, behind others that hold memory until it has some */
    bool per_thread;      /* a _ptsz form: stream 0 is the calling thread's own */
    CUfunction function;  /* may be a CUkernel in disguise */
    struct instance *instance; /* what that leads to */
    uint32_t grid[3], block[3], shared;
    CUstream stream;      /* as passed */
    void **parameters;    /* pointers to values, or NULL */
    void **extra;         /* one buffer of values, or NULL */
    const CUlaunchConfig *config; /* LAUNCH_EX only */
    uint64_t time;        /* nanoseconds since 1970 */
    uint64_t number;      /* launches of the process before this one */
    const struct capacities *capacities; /* of a probed launch with dynamic maps; else NULL */
    struct timer *timer;  /* around the driver's call that launches; NULL: not timed */
    uint64_t nth;         /* launches of the kernel before this one, if some are to be selected */
    struct shape_group *group;      /* launches that are counted together with this one */
    uint64_t nth_of_group;  /* launches of the group before this one */
};

/* The stream that the launch goes to, with the per-thread default stream spelled out. */
static inline CUstream launch_stream(const struct launch *launch)
{
    return launch->per_thread && !launch->stream ? CU_STREAM_PER_THREAD : launch->stream;
}

/* True if all blocks must be resident at the same time. */
bool launch_is_cooperative(const struct launch *launch);

/* Enqueues FUNCTION with the launch's geometry and PARAMETERS (NULL: exactly as passed). */
CUresult launch_enqueue(const struct launch *launch, CUfunction function, void **parameters);

/* Enqueues the original and logs REASON. */
CUresult launch_pass(const struct launch *launch, const struct reason *reason);

#endif

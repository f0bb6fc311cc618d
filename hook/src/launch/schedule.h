/* The choice of launches to probe where not all are. The launches of a kernel that have the same shape are one shape
 * group; its first launch is probed, and then ever fewer, as the probe's weight says (backoff.h). */
#ifndef TUI_PROBE_SCHEDULE_H
#define TUI_PROBE_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backoff.h"
#include "kernel.h"
#include "launch.h"

/* A kernel has GROUP_SHAPES shape groups of one shape each. The rest share groups by the binary order of their number
 * of blocks. */
enum { GROUP_SHAPES = 16, GROUP_ORDERS = 64 };

struct shape {
    uint32_t grid[3], block[3], shared, cluster[3]; /* cluster: all 0 if the launch asks for none */
};

struct shape_group {
    struct shape_group *older; /* of the process */
    struct kernel *kernel;
    uint32_t id; /* in the order in which they were met */
    bool shares; /* is of all launches from 2^order to 2^(order + 1) - 1 blocks that have no group of their own */
    unsigned order;
    struct shape shape;
    uint64_t seed;

    /* The log's, under its lock. */
    bool named;    /* it has the line that says what it is */
    bool recorded; /* some launch of it has lines of its own */

    /* Fields that launching threads write, away from those that the log's thread reads. */
    _Alignas(64) atomic_uint_fast64_t launches;
    atomic_uint_fast64_t begun; /* launches before the schedule began anew */
    struct backoff probes;
    atomic_uint extras; /* launches that were due because one before had no room for all of its records */
    struct timed timed;
    atomic_uint_fast64_t lost; /* launches that the log could not take, and does not know of yet */
};

/* The shape group of a launch of KERNEL, met for the first time or known. NULL: there is no memory. */
struct shape_group *schedule_group(struct kernel *kernel, const struct launch *launch);

/* Counts a launch of it; how many came before. */
static inline uint64_t schedule_count(struct shape_group *group)
{
    return atomic_fetch_add_explicit(&group->launches, 1, memory_order_relaxed);
}

/* The place of launch NTH of GROUP in the schedule. */
static inline uint64_t schedule_place(const struct shape_group *group, uint64_t nth)
{
    const uint64_t begun = atomic_load_explicit(&group->begun, memory_order_relaxed);
    return nth > begun ? nth - begun : 0;
}

/* True if it may be the turn of launch NTH of GROUP to be probed. */
static inline bool schedule_near(const struct shape_group *group, uint64_t nth)
{
    return schedule_place(group, nth) >= atomic_load_explicit(&group->probes.next, memory_order_relaxed);
}

/* Lets every group begin anew with its next launch: recording was switched on. */
void schedule_renew(void);

/* True if it is its turn, which is taken thereby. HEAVY probes have fewer. */
bool schedule_take(struct shape_group *group, uint64_t nth, bool heavy);

/* A launch of GROUP had no room for all of its records, and the next will have: it is due immediately. Twice for a group at
 * most. */
void schedule_again(struct shape_group *group);

/* The schedule of all groups of KERNEL begins anew: it has more probes now. */
void schedule_renew_kernel(const struct kernel *kernel);

/* Calls VISIT for each group, the newest first. */
void schedule_each(void (*visit)(struct shape_group *group));

/* Forgets that another thread may be at work, in a forked child. */
void schedule_reset(void);

#endif

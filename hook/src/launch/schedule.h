/* Which launches are probed where not all are. The launches of a kernel that have the same shape are of one key; its
 * first launch is probed, and then ever fewer, by the pace of the probe's weight. */
#ifndef TUI_PROBE_SCHEDULE_H
#define TUI_PROBE_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel.h"
#include "launch.h"
#include "pace.h"

/* A kernel has so many keys of one shape each. The rest share keys by the binary order of their number of blocks. */
enum { KEY_SHAPES = 16, KEY_ORDERS = 64 };

struct shape {
    uint32_t grid[3], block[3], shared, cluster[3]; /* cluster: all 0 if the launch asks for none */
};

struct key {
    struct key *older; /* of the process */
    struct kernel *kernel;
    uint32_t id; /* in the order in which they were met */
    bool shares; /* is of all launches from 2^order to 2^(order + 1) - 1 blocks that have no key of their own */
    unsigned order;
    struct shape shape;
    uint64_t seed;

    /* The log's, under its lock. */
    bool named;    /* it has the line that says what it is */
    bool recorded; /* some launch of it has lines of its own */

    /* What launching threads write, away from what the log's thread reads. */
    _Alignas(64) atomic_uint_fast64_t launches;
    atomic_uint_fast64_t begun; /* launches before the schedule began anew */
    struct pace probes;
    atomic_uint extras; /* launches that were due because one before had no room for all of its records */
    struct timed timed;
    atomic_uint_fast64_t lost; /* launches that the log could not take, and does not know of yet */
};

/* The key of a launch of KERNEL, met for the first time or known. NULL: there is no memory. */
struct key *schedule_key(struct kernel *kernel, const struct launch *launch);

/* Counts a launch of it; how many came before. */
static inline uint64_t schedule_count(struct key *key)
{
    return atomic_fetch_add_explicit(&key->launches, 1, memory_order_relaxed);
}

/* The place of launch NTH of KEY in the schedule. */
static inline uint64_t schedule_place(const struct key *key, uint64_t nth)
{
    const uint64_t begun = atomic_load_explicit(&key->begun, memory_order_relaxed);
    return nth > begun ? nth - begun : 0;
}

/* Whether it may be the turn of launch NTH of KEY to be probed. */
static inline bool schedule_near(const struct key *key, uint64_t nth)
{
    return schedule_place(key, nth) >= atomic_load_explicit(&key->probes.next, memory_order_relaxed);
}

/* Lets every key begin anew with its next launch: recording was switched on. */
void schedule_renew(void);

/* Whether it is its turn, which is taken thereby. HEAVY probes have fewer. */
bool schedule_take(struct key *key, uint64_t nth, bool heavy);

/* A launch of KEY had no room for all of its records, and the next will have: it is due at once. Twice for a key at most. */
void schedule_again(struct key *key);

/* Calls VISIT for each key, the newest first. */
void schedule_each(void (*visit)(struct key *key));

/* Forgets that another thread may be at work, in a forked child. */
void schedule_reset(void);

#endif

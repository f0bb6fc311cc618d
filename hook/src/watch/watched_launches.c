#include "watched_launches.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "clock.h"
#include "kernel.h"
#include "launch.h"
#include "schedule.h"

/* More than a device queues. A power of two. */
enum { KEPT = 4096 };

/* The sequence is odd while the entry is written, and a reader that finds it changed has read nothing. */
struct entry {
    atomic_uint_fast64_t sequence;
    atomic_uint_fast64_t logged; /* 1 + the number of the launch that someone logs */
    struct watched_launch launch;
};

static struct entry entries[KEPT];

enum unwatched_state { UNUSED, CHANGING, LAUNCHING };

/* The watchdog reads it while other threads launch: each field by itself, and then whether it is still the same. */
struct unwatched {
    _Atomic(enum unwatched_state) state;
    _Atomic(uint64_t) number, since;
    _Atomic(const struct kernel *) kernel;
    _Atomic(const struct reason *) reason;
};

static struct unwatched unwatched[UNWATCHED_LAUNCHES];

static struct entry *entry_of(uint64_t number)
{
    return &entries[number % KEPT];
}

void watched_launch_begins(const struct launch *launch, struct kernel_probe *probe)
{
    struct entry *entry = entry_of(launch->number);
    struct kernel_probe *part = NULL;
    while ((part = kernel_probe_next(probe, part)) && !part->resident)
        ;
    atomic_fetch_add_explicit(&entry->sequence, 1, memory_order_acq_rel);
    entry->launch = (struct watched_launch){.number = launch->number,
                                            .time = launch->time,
                                            .probe = part,
                                            .group = launch->group,
                                            .stream = (uint64_t)(uintptr_t)launch->stream,
                                            .shared = launch->shared};
    memcpy(entry->launch.grid, launch->grid, sizeof launch->grid);
    memcpy(entry->launch.block, launch->block, sizeof launch->block);
    atomic_fetch_add_explicit(&entry->sequence, 1, memory_order_release);
}

bool watched_launch_find(uint64_t number, struct watched_launch *launch)
{
    struct entry *entry = entry_of(number);
    const uint64_t before = atomic_load_explicit(&entry->sequence, memory_order_acquire);
    *launch = entry->launch;
    atomic_thread_fence(memory_order_acquire);
    const uint64_t after = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
    return before == after && before % 2 == 0 && before && launch->number == number && launch->probe;
}

bool watched_launch_logs(uint64_t number)
{
    uint64_t before = atomic_load(&entry_of(number)->logged);
    return before != number + 1 && atomic_compare_exchange_strong(&entry_of(number)->logged, &before, number + 1);
}

size_t unwatched_launch_begins(const struct launch *launch, const struct reason *reason)
{
    size_t place = 0;
    for (; place < UNWATCHED_LAUNCHES; place++) {
        enum unwatched_state before = UNUSED;
        if (!atomic_compare_exchange_strong(&unwatched[place].state, &before, CHANGING))
            continue;
        atomic_store(&unwatched[place].number, launch->number);
        atomic_store(&unwatched[place].since, clock_now());
        atomic_store(&unwatched[place].kernel, launch->group ? launch->group->kernel : NULL);
        atomic_store(&unwatched[place].reason, reason);
        atomic_store(&unwatched[place].state, LAUNCHING);
        break;
    }
    return place;
}

void unwatched_launch_ends(size_t place)
{
    if (place < UNWATCHED_LAUNCHES)
        atomic_store(&unwatched[place].state, UNUSED);
}

bool unwatched_launch_at(size_t place, struct unwatched_launch *launch)
{
    struct unwatched *own = &unwatched[place];
    if (atomic_load(&own->state) != LAUNCHING)
        return false;
    *launch = (struct unwatched_launch){.number = atomic_load(&own->number),
                                        .since = atomic_load(&own->since),
                                        .kernel = atomic_load(&own->kernel),
                                        .reason = atomic_load(&own->reason)};
    return atomic_load(&own->state) == LAUNCHING && atomic_load(&own->number) == launch->number;
}

void watched_launches_reset(void)
{
    for (size_t i = 0; i < UNWATCHED_LAUNCHES; i++)
        atomic_store(&unwatched[i].state, UNUSED);
    for (size_t i = 0; i < KEPT; i++) {
        atomic_store(&entries[i].sequence, 0);
        atomic_store(&entries[i].logged, 0);
    }
}

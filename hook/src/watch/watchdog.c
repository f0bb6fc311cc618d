#include "watchdog.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "buffers.h"
#include "clock.h"
#include "control.h"
#include "drain_chunk.h"
#include "event_log.h"
#include "hook_state.h"
#include "kernel.h"
#include "launch.h"
#include "launch_log.h"
#include "positions.h"
#include "reasons.h"
#include "resident.h"
#include "run_notes.h"
#include "running_launches.h"
#include "settings.h"
#include "signals.h"
#include "simulated_fault.h"
#include "streams.h"
#include "threads.h"
#include "watched_launches.h"

/* A launch is found at the latest this part of the limit after it. */
enum { PARTS = 8, LEAST_PAUSE_MS = 20, MOST_PAUSE_MS = 1000, MOST_POOLS = 16, MOST_LAUNCHES = 128 };

/* At an interrupt, and when the process ends, a launch is reported that has run for so long. */
enum { INTERRUPTED_MS = 250, STEP_MS = 50, UNWATCHED_STEP_MS = 250, END_MS = 1500, NAP_MICROSECONDS = 500 };
#define NS_PER_MS UINT64_C(1000000)

/* A launch with warps on a device, and since when they have been seen in each round. */
struct seen {
    const struct pool *pool;
    uint64_t launch, since;
    struct found_warps warps; /* in this round; none: it has ended */
    bool reported, noted;
    uint64_t interrupts; /* the last one in which it has been noted */
};

static atomic_bool started, watches;
static atomic_uint ends_asked, ends_done; /* tickets of watchdog_end */
static atomic_uint_fast64_t deadlock; /* 1 + the launch that the simulated GPU has ended as one; 0: none */
static sem_t wake;
static struct seen seen[MOST_LAUNCHES];
static size_t n_seen;
static struct run_end run_end;

/* The entry of a launch; that of the last one if there are too many, which does not live long enough to matter. */
static struct seen *entry_of(const struct pool *pool, uint64_t launch, uint64_t now)
{
    for (size_t i = 0; i < n_seen; i++)
        if (seen[i].pool == pool && seen[i].launch == launch)
            return &seen[i];
    n_seen += n_seen < MOST_LAUNCHES;
    seen[n_seen - 1] = (struct seen){.pool = pool, .launch = launch, .since = now};
    return &seen[n_seen - 1];
}

static void count(struct found_warps *warps, uint32_t block)
{
    if (!warps->n || block < warps->first_block)
        warps->first_block = block;
    if (!warps->n || block > warps->last_block)
        warps->last_block = block;
    warps->n++;
}

/* Counts the warps of all launches in the table of POOL, and forgets the launches of POOL that have none. */
static void look(const struct pool *pool, const uint8_t *table, uint64_t now)
{
    struct resident_warp warp;
    for (size_t i = 0; i < n_seen; i++)
        if (seen[i].pool == pool)
            seen[i].warps.n = 0;
    const size_t slot_size = pool->resident_size / RESIDENT_SLOTS;
    for (size_t slot = 0; slot < RESIDENT_SLOTS; slot++)
        if (positions_warp(table + slot * slot_size, &warp))
            count(&entry_of(pool, warp.launch, now)->warps, warp.block);
    size_t still = 0;
    for (size_t i = 0; i < n_seen; i++)
        if (seen[i].pool != pool || seen[i].warps.n)
            seen[still++] = seen[i];
    n_seen = still;
}

/* A launching thread logs its launch when the driver has returned, which the simulated one does at the kernel's end. */
static void log_launch(const struct watched_launch *watched)
{
    struct launch launch = {.number = watched->number,
                            .time = watched->time,
                            .group = watched->group,
                            .shared = watched->shared,
                            .stream = (CUstream)(uintptr_t)watched->stream};
    memcpy(launch.grid, watched->grid, sizeof launch.grid);
    memcpy(launch.block, watched->block, sizeof launch.block);
    if (watched->group && watched_launch_logs(watched->number)) /* the lines of a graph's nodes are others */
        launch_log_probed(&launch, watched->probe, NULL, CUDA_SUCCESS);
}

/* A kernel that overwrites the table leaves numbers of blocks that the grid does not have. False if all are such. */
static bool keep_within_grid(struct found_warps *warps, const unsigned int grid[3])
{
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    if (warps->last_block >= blocks)
        warps->last_block = (uint32_t)(blocks - 1);
    return warps->first_block < blocks;
}

/* No warp of it can continue: it need not run for longer to be reported. */
static bool is_deadlock(const struct seen *entry)
{
    return atomic_load(&deadlock) == entry->launch + 1;
}

static void report(struct seen *entry, const uint8_t *table, uint64_t now)
{
    struct watched_launch watched;
    uint32_t left_out = 0;
    entry->reported = true;
    if (!watched_launch_find(entry->launch, &watched) || !keep_within_grid(&entry->warps, watched.grid))
        return;
    log_launch(&watched);
    const struct reason *reason = positions_write(&watched, table, &entry->warps, &left_out);
    event_log("[stuck] launch %llu kernel %u seconds %.1f warps %u left-out %u%s reason %s\n",
              (unsigned long long)watched.number, watched.probe->kernel->index, (double)(now - entry->since) / 1e9,
              entry->warps.n, left_out, is_deadlock(entry) ? " deadlock" : "", reason ? reason->written : "-");
    simulated_findings_log_running(watched.probe->kernel->name, watched.number);
}

static bool is_over_limit(const struct seen *entry, uint64_t now)
{
    return now - entry->since >= settings.watchdog * NS_PER_MS;
}

/* It ran when the run was interrupted, and has not ended since: it may never do so. */
static bool is_interrupted(const struct seen *entry, uint64_t now)
{
    return run_end_requests(&run_end, entry->since) && now - entry->since >= INTERRUPTED_MS * NS_PER_MS;
}

/* The launcher ends the process: for the limit, or at the second interrupt if the process handled the first. */
static void note(struct seen *entry, uint64_t now)
{
    char text[64];
    if (is_over_limit(entry, now) && !entry->noted) {
        entry->noted = true;
        run_note("stuck", reason_number(text, entry->launch));
    }
    if (is_interrupted(entry, now) && entry->interrupts != run_end.interrupts && !signals_pending()) {
        entry->interrupts = run_end.interrupts;
        snprintf(text, sizeof text, "%llu %llu", (unsigned long long)run_end_requests(&run_end, entry->since),
                 (unsigned long long)entry->launch);
        run_note("interrupted", text);
    }
}

/* Returns whether a launch is too young to be reported in an ENDING process. */
static bool round_of(struct pool *pool, uint8_t *table, bool ending)
{
    const uint64_t now = clock_now();
    bool is_young = false;
    if (!drain_read_resident(pool, table))
        return false;
    look(pool, table, now);
    for (size_t i = 0; i < n_seen; i++) {
        if (seen[i].pool != pool)
            continue;
        const bool is_old = is_deadlock(&seen[i]) || now - seen[i].since >= INTERRUPTED_MS * NS_PER_MS;
        if (!seen[i].reported && (is_over_limit(&seen[i], now) || is_interrupted(&seen[i], now) || (ending && is_old)))
            report(&seen[i], table, now);
        note(&seen[i], now);
        is_young = is_young || !is_old;
    }
    return is_young;
}

/* Looks at all devices. Returns as round_of. */
static bool look_around(bool ending)
{
    static uint8_t *table; /* the tables of a run have one size */
    struct pool *pools[MOST_POOLS];
    const size_t n = buffers_resident_pools(pools, MOST_POOLS);
    bool is_young = false;
    if (n && !table)
        table = malloc(pools[0]->resident_size);
    run_end_interrupt(&run_end, atomic_load(&control->ending), UINT64_MAX); /* all launches of this round are older */
    run_end.ending = ending;
    for (size_t i = 0; i < n && table; i++)
        is_young = round_of(pools[i], table, ending) || is_young;
    const uint64_t now = clock_now();
    for (size_t i = 0; i < INTERRUPTS_KEPT && run_end.times[i] == UINT64_MAX; i++)
        run_end.times[i] = now;
    running_launches_look(&run_end, now);
    return is_young;
}

static bool is_asked(void)
{
    return atomic_load(&control->ending) != run_end.interrupts || atomic_load(&ends_asked) != atomic_load(&ends_done);
}

/* After an interrupt, launches that ran then are soon old enough. */
static uint64_t pause_ms(void)
{
    uint64_t pause = settings.watchdog ? settings.watchdog / PARTS : MOST_PAUSE_MS;
    pause = pause < LEAST_PAUSE_MS ? LEAST_PAUSE_MS : pause > MOST_PAUSE_MS ? MOST_PAUSE_MS : pause;
    const bool is_soon = run_end.interrupts && clock_now() - run_end.times[0] < 2 * INTERRUPTED_MS * NS_PER_MS;
    return is_soon && pause > STEP_MS ? STEP_MS : pause;
}

static void rest(void)
{
    const uint64_t until = clock_now() + pause_ms() * NS_PER_MS;
    for (uint64_t now; !is_asked() && (now = clock_now()) < until;) {
        const uint64_t most = settings.watchdog ? STEP_MS : UNWATCHED_STEP_MS;
        const uint64_t left = until - now, step = left < most * NS_PER_MS ? left : most * NS_PER_MS;
        struct timespec time;
        clock_gettime(CLOCK_REALTIME, &time);
        time.tv_nsec += (long)step;
        time.tv_sec += time.tv_nsec / 1000000000;
        time.tv_nsec %= 1000000000;
        sem_timedwait(&wake, &time);
    }
}

static void *watch(void *unused)
{
    (void)unused;
    capture_mode_relax();
    for (;;) {
        rest();
        const unsigned asked = atomic_load(&ends_asked);
        const bool ending = asked != atomic_load(&ends_done);
        if (!ending && !hook_is_on() && !hook_state_is_ending()) /* nothing is logged, and the driver may be ending */
            continue;
        for (int n = INTERRUPTED_MS / STEP_MS + 1; look_around(ending) && ending && n > 0; n--)
            usleep(STEP_MS * 1000);
        atomic_store(&ends_done, asked);
    }
    return NULL;
}

void watchdog_start(void)
{
    if (!settings.watchdog && !settings.times)
        return;
    if (atomic_load_explicit(&started, memory_order_relaxed) || atomic_exchange(&started, true))
        return;
    sem_init(&wake, 0, 0);
    atomic_store(&watches, thread_start(watch));
}

void watchdog_expects(const struct launch *launch, struct kernel_probe *probe)
{
    watched_launch_begins(launch, probe);
}

void watchdog_returns(const struct launch *launch)
{
    if (!settings.watchdog || !simulated_deadlock())
        return;
    atomic_store(&deadlock, launch->number + 1);
    watchdog_end();
}

size_t watchdog_passes(const struct launch *launch, const struct reason *reason)
{
    if (!settings.watchdog)
        return UNWATCHED_LAUNCHES;
    return unwatched_launch_begins(launch, reason);
}

size_t watchdog_times(const struct launch *launch)
{
    if (settings.watchdog || !launch->timer)
        return UNWATCHED_LAUNCHES;
    return unwatched_launch_begins(launch, NULL);
}

void watchdog_end(void)
{
    if (!atomic_load(&watches))
        return;
    const uint64_t began = clock_now();
    const unsigned ticket = atomic_fetch_add(&ends_asked, 1) + 1;
    sem_post(&wake);
    while ((int)(atomic_load(&ends_done) - ticket) < 0 && clock_now() - began < END_MS * NS_PER_MS)
        usleep(NAP_MICROSECONDS);
}

void watchdog_reset(void)
{
    atomic_store(&started, false);
    atomic_store(&watches, false);
    atomic_store(&deadlock, 0);
    atomic_store(&ends_asked, 0);
    atomic_store(&ends_done, 0);
    run_end = (struct run_end){0};
    n_seen = 0;
    running_launches_reset();
}

#include "watchdog.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buffers.h"
#include "clock.h"
#include "drain_chunk.h"
#include "event_log.h"
#include "kernel.h"
#include "launch.h"
#include "launch_log.h"
#include "positions.h"
#include "reasons.h"
#include "resident.h"
#include "run_notes.h"
#include "settings.h"
#include "streams.h"
#include "threads.h"
#include "watched_launches.h"

/* A launch is found at the latest this part of the limit after it. */
enum { PARTS = 8, LEAST_PAUSE_MS = 20, MOST_PAUSE_MS = 1000, MOST_POOLS = 16, MOST_LAUNCHES = 128 };

/* A launch with warps on a device, and since when they have been seen in each round. */
struct seen {
    const struct pool *pool;
    uint64_t launch, since;
    struct found_warps warps; /* in this round; none: it has ended */
    bool reported;
};

static atomic_bool started;
static struct seen seen[MOST_LAUNCHES];
static size_t n_seen;

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

static void report(struct seen *entry, const uint8_t *table, uint64_t now)
{
    struct watched_launch watched;
    uint32_t left_out = 0;
    char text[REASON_NUMBER_SIZE];
    entry->reported = true;
    if (!watched_launch_find(entry->launch, &watched) || !keep_within_grid(&entry->warps, watched.grid))
        return;
    log_launch(&watched);
    const struct reason *reason = positions_write(&watched, table, &entry->warps, &left_out);
    event_log("[stuck] launch %llu kernel %u seconds %.1f warps %u left-out %u reason %s\n",
              (unsigned long long)watched.number, watched.probe->kernel->index, (double)(now - entry->since) / 1e9,
              entry->warps.n, left_out, reason ? reason->written : "-");
    run_note("stuck", reason_number(text, watched.number));
}

static void round_of(struct pool *pool, uint8_t *table)
{
    const uint64_t now = clock_now(), limit = settings.watchdog * UINT64_C(1000000);
    if (!drain_read_resident(pool, table))
        return;
    look(pool, table, now);
    for (size_t i = 0; i < n_seen; i++)
        if (seen[i].pool == pool && !seen[i].reported && now - seen[i].since >= limit)
            report(&seen[i], table, now);
}

static void rest(void)
{
    uint64_t pause = settings.watchdog / PARTS;
    pause = pause < LEAST_PAUSE_MS ? LEAST_PAUSE_MS : pause > MOST_PAUSE_MS ? MOST_PAUSE_MS : pause;
    const struct timespec time = {(time_t)(pause / 1000), (long)(pause % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* The tables of a run have one size. */
static void *watch(void *unused)
{
    struct pool *pools[MOST_POOLS];
    uint8_t *table = NULL;
    (void)unused;
    capture_mode_relax();
    for (;;) {
        rest();
        const size_t n = buffers_resident_pools(pools, MOST_POOLS);
        if (n && !table)
            table = malloc(pools[0]->resident_size);
        for (size_t i = 0; i < n && table; i++)
            round_of(pools[i], table);
    }
    return NULL;
}

void watchdog_expects(const struct launch *launch, struct kernel_probe *probe)
{
    watched_launch_begins(launch, probe);
    if (settings.watchdog && !atomic_load_explicit(&started, memory_order_relaxed) && !atomic_exchange(&started, true))
        thread_start(watch);
}

void watchdog_reset(void)
{
    atomic_store(&started, false);
    n_seen = 0;
}

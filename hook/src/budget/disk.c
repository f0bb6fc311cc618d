#include "disk.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "clock.h"
#include "event_log.h"
#include "reasons.h"
#include "settings.h"
#include "signals.h"
#include "trace_dir.h"

/* LOOK_BYTES: the disk is looked at again after that many bytes of tui-probe, however soon. SLACK_PARTS: recording continues
 * only if 1/8 more than the least is free, or it would stop and continue with each file. */
enum { LOOK_BYTES = 64 << 20, SLACK_PARTS = 8, SIZE_TEXT = 32, LEAST_TEXT = 2 * SIZE_TEXT };

/* The disk when it was last looked at. A file system that does not tell its size is not known, and never short. */
struct look {
    bool known;
    uint64_t time, free, total;
    uint64_t written; /* since then, by us */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct look last;
static uint64_t wanted; /* size of the largest file that found no room */
static _Atomic(const struct reason *) shut_reason;

static void look(void)
{
    struct statvfs disk;
    last = (struct look){.time = clock_now()};
    last.known = fstatvfs(trace_dir_fd(), &disk) == 0 && disk.f_blocks;
    if (!last.known)
        return;
    last.free = (uint64_t)disk.f_bavail * disk.f_frsize;
    last.total = (uint64_t)disk.f_blocks * disk.f_frsize;
}

/* Bytes that must stay free. */
static uint64_t least_free(void)
{
    uint64_t share = last.total / 100 * settings.min_free.percent;
    return share > settings.min_free.bytes ? share : settings.min_free.bytes;
}

static bool leaves_enough(uint64_t size)
{
    return !last.known || last.free >= least_free() + last.written + size;
}

static bool is_stale(void)
{
    return last.written > LOOK_BYTES || clock_now() - last.time >= DISK_MILLISECONDS * 1000000ull;
}

/* SIZE bytes more are about to be written. What was written before may have taken less, or be gone again. */
static bool take(uint64_t size)
{
    if (is_stale() || !leaves_enough(size))
        look();
    bool enough = leaves_enough(size);
    if (enough)
        last.written += size;
    else if (size > wanted)
        wanted = size;
    return enough;
}

/* Some more than what was missing: else the next file would shut the gate again. */
static bool has_recovered(void)
{
    if (is_stale())
        look();
    if (!leaves_enough(wanted + least_free() / SLACK_PARTS))
        return false;
    wanted = 0;
    return true;
}

static void size_text(char text[SIZE_TEXT], uint64_t bytes)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"bytes", 0}};
    size_t unit = 0;
    while (units[unit].shift && bytes & ((1ull << units[unit].shift) - 1))
        unit++;
    snprintf(text, SIZE_TEXT, "%llu %s", (unsigned long long)(bytes >> units[unit].shift), units[unit].name);
}

/* "2 GiB or 5 %", as it was asked for. */
static void least_text(char text[LEAST_TEXT])
{
    char size[SIZE_TEXT];
    size_text(size, settings.min_free.bytes);
    if (!settings.min_free.percent)
        snprintf(text, LEAST_TEXT, "%s", size);
    else if (!settings.min_free.bytes)
        snprintf(text, LEAST_TEXT, "%u %%", settings.min_free.percent);
    else
        snprintf(text, LEAST_TEXT, "%s or %u %%", size, settings.min_free.percent);
}

const struct reason *disk_reason(void)
{
    const struct reason *reason = atomic_load(&shut_reason);
    char least[LEAST_TEXT];
    if (reason)
        return reason;
    least_text(least);
    reason = reason_with(DISK_LOW, least);
    atomic_store(&shut_reason, reason);
    return reason;
}

static void tell_pause(const struct look *found, uint64_t size)
{
    char least[LEAST_TEXT];
    least_text(least);
    event_log(
        "[exec] save-paused disk is nearly full (less than %s free): %llu of %llu bytes are free, a result needs %llu;"
        " free some space, choose another disk with --tracedir, or lower --min-free-disk\n",
        least, (unsigned long long)found->free, (unsigned long long)found->total, (unsigned long long)size);
}

/* Sets LOOK to the state of the disk if there is too little room. */
static bool admits(uint64_t size, struct look *look)
{
    if (!settings.min_free.bytes && !settings.min_free.percent)
        return true;
    signals_lock(&mutex);
    const bool enough = take(size);
    *look = last;
    signals_unlock(&mutex);
    return enough;
}

bool disk_has_room(uint64_t size)
{
    struct look look;
    return admits(size, &look);
}

bool disk_admits(uint64_t size, _Atomic(const struct reason *) *gate)
{
    const struct reason *before = NULL;
    struct look look;
    const bool enough = admits(size, &look);
    if (!enough && atomic_compare_exchange_strong(gate, &before, disk_reason()))
        tell_pause(&look, size);
    return enough;
}

bool disk_still_short(_Atomic(const struct reason *) *gate)
{
    const struct reason *reason = atomic_load(gate);
    if (!reason || reason != disk_reason())
        return false;
    pthread_mutex_lock(&mutex);
    const bool enough = has_recovered();
    const struct look look = last;
    pthread_mutex_unlock(&mutex);
    if (enough && atomic_compare_exchange_strong(gate, &reason, NULL))
        event_log("[exec] save-resumed %llu of %llu bytes are free: results are saved again\n",
                  (unsigned long long)look.free, (unsigned long long)look.total);
    return !enough;
}

#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "budget.h"
#include "buffers.h"
#include "clock.h"
#include "disk.h"
#include "event_log.h"
#include "layout.h"
#include "output.h"
#include "own_file.h"
#include "reasons.h"
#include "reservations.h"
#include "result_file.h"
#include "sandbox.h"
#include "settings.h"
#include "trace_dir.h"
#include "write_rate.h"

static atomic_uint_fast64_t last_stamp;
static atomic_uint_fast64_t saved;
static _Atomic(const struct reason *) stopped; /* the disk refused, or is nearly full */

uint64_t result_stamp(uint64_t time)
{
    uint64_t wanted = (time - clock_zero()) / 1000;
    uint64_t last = atomic_load_explicit(&last_stamp, memory_order_relaxed), stamp;
    do
        stamp = wanted > last ? wanted : last + 1;
    while (!atomic_compare_exchange_weak(&last_stamp, &last, stamp));
    return stamp;
}

static uint64_t reserved_bytes(const struct kernel_probe *probe, size_t saved_size)
{
    return result_file_head(probe) + saved_size;
}

/* Some descriptors are the program's now: a program that looks for other descriptors finds them, too. */
static const struct reason *stop_for_good(void)
{
    const struct reason *before = NULL;
    if (!atomic_compare_exchange_strong(&stopped, &before, reason(DESCRIPTORS_CLOSED)))
        return before;
    event_log("[exec] descriptors-closed by the program: nothing more is recorded\n");
    return reason(DESCRIPTORS_CLOSED);
}

const struct reason *result_reserve(const struct kernel_probe *probe, size_t saved_size)
{
    const struct reason *reason = atomic_load_explicit(&stopped, memory_order_relaxed);
    if (!reason && own_file_any_lost())
        reason = stop_for_good();
    return reason ? reason : budget_reserve(probe->kernel, reserved_bytes(probe, saved_size));
}

size_t result_room(const struct kernel_probe *probe)
{
    const uint64_t room = budget_room(probe->kernel), about = budget_disk_bytes(reserved_bytes(probe, 0));
    return room > about ? (size_t)(room - about) : 0;
}

void result_unreserve(const struct kernel_probe *probe, size_t saved_size)
{
    budget_release(probe->kernel, reserved_bytes(probe, saved_size));
}

const struct reason *result_stopped(void)
{
    const struct reason *reason = atomic_load(&stopped);
    return reason ? reason : disk_reason(); /* there is room again by now */
}

void result_give_up(void)
{
    atomic_store(&stopped, reason(NO_TIME));
    output_give_up();
}

uint64_t result_saved_count(void)
{
    return atomic_load(&saved);
}

void result_start(void)
{
    disk_admits(0, &stopped);
}

bool result_paused(void)
{
    return disk_still_short(&stopped);
}

static void settle(const struct piece *piece, bool written, uint64_t on_disk)
{
    size_t saved = 0;
    layout_saved_size(piece->probe, piece->capacities, piece->grid, piece->block, &saved);
    uint64_t reserved = reserved_bytes(piece->probe, saved);
    if (written)
        budget_commit(piece->probe->kernel, reserved, on_disk);
    else
        budget_release(piece->probe->kernel, reserved);
}

void result_drop(const struct piece *piece)
{
    settle(piece, false, 0);
}

/* Bytes of the blocks that a file of SIZE takes; file systems that are late to tell are not asked twice. */
static uint64_t blocks_of(const struct own_file *file, uint64_t size)
{
    struct stat status;
    if (fstat(own_file_number(file), &status) != 0 || !status.st_blocks)
        return size;
    return (uint64_t)status.st_blocks * 512;
}

static void stop(const char *name, int error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", trace_dir_path(), name);
    const struct reason *reason = reason_of_file(path, error);
    const struct reason *before = NULL;
    if (atomic_compare_exchange_strong(&stopped, &before, reason))
        event_log("[exec] save-failed %s %d %s\n", name, error, strerror(error));
}

/* Makes the file under a name that no reader takes for a result, and gives it its own once it is whole. */
static bool write_named(const char *name, const struct piece *piece, const struct result_source *source, uint64_t *size,
                        uint64_t *on_disk)
{
    char temporary[80];
    snprintf(temporary, sizeof temporary, "result/.%s.tmp", name + sizeof "result/" - 1);
    errno = 0;
    struct own_file file;
    bool written =
        own_file_create(&file, trace_dir_fd(), temporary, 0) && result_file_write(&file, piece, source, &stopped, size);
    int error = errno;
    if (written)
        *on_disk = blocks_of(&file, *size);
    if (file.number >= 0 && !own_file_close(&file) && written) {
        written = false;
        error = errno;
    }
    if (written && renameat(trace_dir_fd(), temporary, trace_dir_fd(), name) != 0) {
        written = false;
        error = errno;
    }
    if (!written)
        unlinkat(trace_dir_fd(), temporary, 0);
    if (!written && error)
        stop(name, error);
    return written;
}

bool result_write(const struct piece *piece, const struct result_source *source)
{
    char name[64];
    uint64_t size = 0, on_disk = 0;
    snprintf(name, sizeof name, "result/%llu.%06llu.bin", (unsigned long long)(piece->stamp / 1000000),
             (unsigned long long)(piece->stamp % 1000000));
    const char *probe = piece->probe->name;
    const uint64_t began = clock_now();
    const struct reason *before = NULL;
    if (sandbox_is_deadly())
        atomic_compare_exchange_strong(&stopped, &before, reason(SANDBOX));
    const bool written = !atomic_load(&stopped) && write_named(name, piece, source, &size, &on_disk);
    settle(piece, written, on_disk);
    if (!written)
        return false;
    write_rate_saw(on_disk, clock_now() - began);
    atomic_fetch_add(&saved, 1);
    event_log("[exec] save %s size %llu kernel %u launch %llu%s%s\n", name, (unsigned long long)size,
              piece->probe->kernel->index, (unsigned long long)piece->number, probe ? " probe " : "",
              probe ? probe : "");
    return true;
}

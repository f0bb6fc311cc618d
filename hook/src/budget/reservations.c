#define _GNU_SOURCE
#include "reservations.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "budget.h"
#include "control.h"
#include "event_log.h"
#include "kernel.h"
#include "reasons.h"
#include "settings.h"
#include "write_rate.h"

enum { BLOCK_UNIT = 512, FOLDERS_DEEP = 4, FOLDER_BYTES = 64 << 10, RESERVED_PART = 16 };

/* Reasons of launches beyond a limit, made once per limit. */
struct refusal {
    const char *name, *option;
    _Atomic uint64_t limit; /* that the reason reports */
    _Atomic(const struct reason *) reason;
};

static struct refusal no_bytes = {.name = "trace-bytes", .option = "--max-trace-bytes"};
static struct refusal no_files = {.name = "result-files", .option = "--max-result-files"};
static struct refusal no_share = {.name = "share", .option = "--max-trace-bytes"};
static struct refusal no_rate = {.name = "write-rate", .option = "--max-write-rate"};

static void tell(const struct refusal *refusal, const struct control_budget *budget, bool stopped)
{
    event_log("[budget] %s %s limit %llu used %llu: allow more with %s\n", refusal->name, stopped ? "reached" : "thins",
              (unsigned long long)atomic_load(&budget->limit), (unsigned long long)atomic_load(&budget->used),
              refusal->option);
}

/* Once for each rate: it may be over and over again. */
static const struct reason *refuse_rate(void)
{
    const struct reason *reason = reason(WRITE_RATE);
    const uint64_t rate = atomic_load(&control->write_rate), before = atomic_exchange(&no_rate.limit, rate);
    if (!atomic_exchange(&no_rate.reason, reason) || before != rate)
        event_log("[budget] %s thins limit %llu used %llu: allow more with %s\n", no_rate.name,
                  (unsigned long long)rate, (unsigned long long)rate, no_rate.option);
    return reason;
}

static const struct reason *make_reason(const struct refusal *refusal, uint64_t limit)
{
    char text[REASON_NUMBER_SIZE];
    if (refusal == &no_files)
        return reason_with(RESULTS_FULL, reason_number(text, limit));
    if (refusal == &no_share)
        return reason(TRACE_SHARE);
    return reason_with(TRACE_FULL, reason_budget(text, limit));
}

/* Formats, and tells the log, where the limit is another one than last time. */
static const struct reason *refuse(struct refusal *refusal, const struct control_budget *budget)
{
    control_reclaim();
    const struct reason *reason = atomic_load_explicit(&refusal->reason, memory_order_acquire);
    uint64_t limit = atomic_load(&budget->limit), before = atomic_load(&refusal->limit);
    if (reason && before == limit)
        return reason;
    reason = make_reason(refusal, limit);
    const struct reason *previous = atomic_exchange(&refusal->reason, reason);
    atomic_store(&refusal->limit, limit);
    if (previous != reason || before != limit)
        tell(refusal, budget, refusal != &no_share);
    return reason;
}

static struct budget_amount all_left(void)
{
    return (struct budget_amount){control_left_without_log(), control_left(&control->result_files)};
}

/* The last files are for kernels that have none yet: each of a model's hundreds of kernels gets a result. */
static struct budget_amount share_of(const struct kernel *kernel, struct budget_amount left)
{
    const struct budget_amount held = {atomic_load(&kernel->held_bytes), atomic_load(&kernel->held_files)};
    const uint64_t reserved = held.files ? atomic_load(&control->result_files.limit) / RESERVED_PART : 0;
    left.files -= left.files < reserved ? left.files : reserved;
    return budget_share(left, held, !held.files);
}

uint64_t budget_room(const struct kernel *kernel)
{
    const struct budget_amount share = share_of(kernel, all_left());
    return share.files ? share.bytes : 0;
}

static bool is_within_share(const struct kernel *kernel, uint64_t bytes)
{
    if (!settings.scheduled || !atomic_load(&control->shares))
        return true;
    const struct budget_amount left = all_left(), share = share_of(kernel, left);
    if (bytes > left.bytes || !left.files)
        return true; /* which is reported as a budget that is reached */
    return bytes <= share.bytes && share.files;
}

const struct reason *budget_reserve(struct kernel *kernel, uint64_t size)
{
    const uint64_t bytes = budget_disk_bytes(size);
    if (!is_within_share(kernel, bytes))
        return refuse(&no_share, &control->trace_bytes);
    if (settings.scheduled && write_rate_is_over())
        return refuse_rate();
    if (!control_take(&control->result_files, 1))
        return refuse(&no_files, &control->result_files);
    if (bytes > control_left_without_log() ||
        !control_take(&control->trace_bytes, bytes)) { /* a smaller one may still fit */
        control_return(&control->result_files, 1);
        return refuse(&no_bytes, &control->trace_bytes);
    }
    control_hold((int64_t)bytes, 1);
    write_rate_use(bytes);
    atomic_fetch_add(&kernel->held_bytes, bytes);
    atomic_fetch_add(&kernel->held_files, 1);
    return NULL;
}

void budget_release(struct kernel *kernel, uint64_t size)
{
    const uint64_t bytes = budget_disk_bytes(size);
    control_return(&control->trace_bytes, bytes);
    control_return(&control->result_files, 1);
    control_hold(-(int64_t)bytes, -1);
    write_rate_return(bytes);
    atomic_fetch_sub(&kernel->held_bytes, bytes);
    atomic_fetch_sub(&kernel->held_files, 1);
}

void budget_commit(struct kernel *kernel, uint64_t size, uint64_t on_disk)
{
    const uint64_t booked = budget_disk_bytes(size), taken = budget_disk_bytes(on_disk);
    control_use(&control->trace_bytes, taken);
    control_return(&control->trace_bytes, booked);
    control_hold(-(int64_t)booked, -1);
    write_rate_return(booked > taken ? booked - taken : 0);
    atomic_fetch_add(&kernel->held_bytes, taken - booked);
}

const struct reason *budget_refuses_folder(uint64_t size)
{
    if (!control_left(&control->result_files))
        return refuse(&no_files, &control->result_files);
    if (control_left_without_log() / 2 <= size + FOLDER_BYTES / 2)
        return refuse(&no_bytes, &control->trace_bytes);
    return NULL;
}

void budget_refused(const struct reason *reason)
{
    if (reason->code == REASON_RESULTS_FULL)
        atomic_fetch_add(&control->result_files.refused, 1);
    else if (reason->code == REASON_TRACE_FULL)
        atomic_fetch_add(&control->trace_bytes.refused, 1);
    else if (reason->code == REASON_TRACE_SHARE)
        atomic_fetch_add(&control->over_share, 1);
    else if (reason->code == REASON_WRITE_RATE)
        atomic_fetch_add(&control->over_rate, 1);
}

static uint64_t folder_bytes(int parent, const char *name, const char *image, int deep)
{
    struct stat status;
    uint64_t bytes = 0;
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = folder < 0 ? NULL : fdopendir(folder);
    if (!entries && folder >= 0)
        close(folder);
    if (entries && fstat(folder, &status) == 0)
        bytes = (uint64_t)status.st_blocks * BLOCK_UNIT;
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (!S_ISDIR(status.st_mode))
            bytes +=
                status.st_nlink > 1 && strcmp(entry->d_name, image) != 0 ? 0 : (uint64_t)status.st_blocks * BLOCK_UNIT;
        else if (deep)
            bytes += folder_bytes(folder, entry->d_name, image, deep - 1);
    }
    if (entries)
        closedir(entries);
    return bytes;
}

void budget_count_folder(struct budget_folder *folder)
{
    if (!folder->path)
        return;
    uint64_t bytes = folder_bytes(AT_FDCWD, folder->path, folder->has_image ? "original.bin" : "", FOLDERS_DEEP);
    control_use(&control->trace_bytes, bytes);
    control_return(&control->trace_bytes, folder->counted);
    folder->counted = bytes;
}

void budget_reset(void)
{
    struct refusal *const all[] = {&no_bytes, &no_files, &no_share, &no_rate};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        atomic_store(&all[i]->reason, NULL);
}

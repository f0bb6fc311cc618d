#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buffers.h"
#include "clock.h"
#include "event_log.h"
#include "kernel.h"
#include "reasons.h"
#include "settings.h"
#include "trace_dir.h"

static atomic_uint_fast64_t last_stamp;
static atomic_uint_fast64_t bytes_booked;
static _Atomic(const char *) full;    /* what is said of launches beyond the limit */
static _Atomic(const char *) stopped; /* the disk refused */

enum { HEADER_BYTES = 8 * sizeof(uint32_t), MAP_BYTES = 2 * sizeof(uint32_t) + sizeof(uint64_t) };

bool result_map_size(const struct kernel *kernel, size_t map, const uint32_t grid[3], const uint32_t block[3],
                     size_t *size)
{
    const struct map *m = &kernel->maps[map];
    uint64_t blocks, total;
    return !__builtin_mul_overflow((uint64_t)grid[0] * grid[1], (uint64_t)grid[2], &blocks) &&
           !__builtin_mul_overflow(blocks, map_slots_per_block(m, block), &total) &&
           !__builtin_mul_overflow(total, (uint64_t)m->bytes, &total) && total < SIZE_MAX / 2 &&
           (*size = (size_t)total, true);
}

static size_t aligned(size_t size)
{
    return (size + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
}

bool result_device_map(const struct kernel *kernel, size_t map, const uint32_t grid[3], const uint32_t block[3],
                       size_t *size)
{
    if (!result_map_size(kernel, map, grid, block, size))
        return false;
    *size = aligned(*size);
    return true;
}

bool result_device_size(const struct kernel *kernel, const uint32_t grid[3], const uint32_t block[3], size_t *size)
{
    *size = 0;
    for (size_t i = 0; i < kernel->n_maps; i++) {
        size_t map;
        if (!result_device_map(kernel, i, grid, block, &map) || *size > SIZE_MAX / 2)
            return false;
        *size += map;
    }
    return true;
}

uint64_t result_stamp(uint64_t time)
{
    uint64_t wanted = (time - clock_zero()) / 1000;
    uint64_t last = atomic_load_explicit(&last_stamp, memory_order_relaxed), stamp;
    do
        stamp = wanted > last ? wanted : last + 1;
    while (!atomic_compare_exchange_weak(&last_stamp, &last, stamp));
    return stamp;
}

static uint64_t booking(const struct kernel *kernel, size_t device_size)
{
    return HEADER_BYTES + MAP_BYTES * kernel->n_maps + device_size;
}

static const char *no_room(void)
{
    const char *reason = atomic_load_explicit(&full, memory_order_relaxed);
    if (!reason) {
        reason = reason_print("trace is full (%llu bytes)", (unsigned long long)settings.max_trace_bytes);
        atomic_store(&full, reason);
    }
    return reason;
}

const char *result_reserve(const struct kernel *kernel, size_t device_size)
{
    const char *reason = atomic_load_explicit(&stopped, memory_order_relaxed);
    if (reason || !settings.max_trace_bytes)
        return reason;
    uint64_t size = booking(kernel, device_size);
    if (atomic_fetch_add(&bytes_booked, size) + size <= settings.max_trace_bytes)
        return NULL;
    result_unreserve(kernel, device_size); /* a smaller one may still fit */
    return no_room();
}

void result_unreserve(const struct kernel *kernel, size_t device_size)
{
    if (settings.max_trace_bytes)
        atomic_fetch_sub(&bytes_booked, booking(kernel, device_size));
}

const char *result_stopped(void)
{
    return atomic_load(&stopped);
}

static bool write_all(int file, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size) {
        ssize_t n = write(file, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool write_header(int file, const struct piece *piece, size_t *size)
{
    const struct kernel *kernel = piece->kernel;
    uint32_t header[8] = {piece->grid[0],  piece->grid[1],  piece->grid[2], piece->block[0],
                          piece->block[1], piece->block[2], piece->shared,  (uint32_t)kernel->n_maps};
    uint64_t offset = HEADER_BYTES + MAP_BYTES * kernel->n_maps;
    if (!write_all(file, header, sizeof header))
        return false;
    for (size_t i = 0; i < kernel->n_maps; i++) {
        struct {
            uint32_t bytes, threads;
            uint64_t offset;
        } entry = {kernel->maps[i].bytes, kernel->maps[i].level == MAP_WARP ? 32 : 1, offset};
        size_t map = 0;
        if (!write_all(file, &entry, sizeof entry))
            return false;
        result_map_size(kernel, i, piece->grid, piece->block, &map);
        offset += map;
    }
    *size = offset;
    return true;
}

/* The records of one map, from the layout on the device to the layout of the file: they are the same,
 * slot after slot, so that bytes are copied as they come. */
static bool write_map(int file, size_t offset, size_t size, const struct result_source *source)
{
    while (size) {
        size_t length = size < source->window ? size : source->window;
        const void *bytes = source->read(source->argument, offset, length);
        if (!bytes)
            errno = 0; /* the driver's failure, not the disk's */
        if (!bytes || !write_all(file, bytes, length))
            return false;
        offset += length;
        size -= length;
    }
    return true;
}

static bool write_maps(int file, const struct piece *piece, const struct result_source *source)
{
    size_t offset = piece->offset;
    for (size_t i = 0; i < piece->kernel->n_maps; i++) {
        size_t size = 0;
        result_map_size(piece->kernel, i, piece->grid, piece->block, &size);
        if (!write_map(file, offset, size, source))
            return false;
        offset += aligned(size);
    }
    return true;
}

static void stop(const char *name, int error)
{
    const char *reason = reason_print("results stopped: %s (%s/%s)", strerror(error), trace_dir_path(), name);
    const char *before = NULL;
    if (atomic_compare_exchange_strong(&stopped, &before, reason))
        event_log("[exec] save-failed %s %d %s\n", name, error, strerror(error));
}

bool result_write(const struct piece *piece, const struct result_source *source)
{
    char name[64], temporary[80];
    size_t size = 0;
    if (atomic_load(&stopped))
        return false;
    snprintf(name, sizeof name, "result/%llu.%06llu.bin", (unsigned long long)(piece->stamp / 1000000),
             (unsigned long long)(piece->stamp % 1000000));
    snprintf(temporary, sizeof temporary, "result/.%s.tmp", name + sizeof "result/" - 1);
    errno = 0;
    int file = openat(trace_dir_fd(), temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool written = file >= 0 && write_header(file, piece, &size) && write_maps(file, piece, source);
    int error = errno;
    if (file >= 0 && close(file) != 0 && written) {
        written = false;
        error = errno;
    }
    if (written && renameat(trace_dir_fd(), temporary, trace_dir_fd(), name) != 0) {
        written = false;
        error = errno;
    }
    if (!written) {
        unlinkat(trace_dir_fd(), temporary, 0);
        if (error)
            stop(name, error);
        return false;
    }
    event_log("[exec] save %s size %zu kernel %u launch %llu\n", name, size, piece->kernel->index,
              (unsigned long long)piece->number);
    return true;
}

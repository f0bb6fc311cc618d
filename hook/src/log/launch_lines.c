#include "launch_lines.h"

#include <string.h>

#include "control.h"
#include "kernel.h"
#include "launch_counts.h"
#include "layout.h"
#include "log_file.h"
#include "reasons.h"

typedef unsigned long long ull;

/* Values of up to eight bytes as numbers, larger ones (structures) as their bytes. */
static void parameter(const uint8_t *bytes, size_t size)
{
    if (size <= sizeof(uint64_t)) {
        uint64_t value = 0;
        for (size_t i = size; i-- > 0;)
            value = value << 8 | bytes[i];
        log_file_append(" %llx", (ull)value);
        return;
    }
    log_file_append(" ");
    for (size_t i = 0; i < size; i++)
        log_file_append("%02x", bytes[i]);
}

static void parameters_line(const struct launch_record *r)
{
    const struct kernel *kernel = r->kernel;
    const uint8_t *bytes = r->parameters;
    log_file_append("[exec] %llu param", (ull)r->time);
    if (kernel->n_parameters && !bytes)
        log_file_append(" -");
    for (size_t i = 0; i < kernel->n_parameters && bytes; i++) {
        parameter(bytes, kernel->parameters[i].size);
        bytes += kernel->parameters[i].size;
    }
    log_file_append("\n");
}

/* Returns the bytes of the map's records. */
static ull map_line(const struct launch_record *r, size_t index)
{
    const struct map *map = &r->probe->maps[index];
    struct extent extent;
    layout_extent(&extent, r->probe, r->capacities, r->grid, r->block);
    ull slots = layout_slots(map, &extent), bytes = layout_slot(map, layout_cap(r->probe, index, r->capacities));
    ull total = extent.blocks * slots * bytes + layout_sites(map);
    log_file_append("[exec] grid %llu %s %llu probe %llu total %llu\n", (ull)extent.blocks,
                    map->level == MAP_WARP ? "warp " : "block", slots, bytes, total);
    return total;
}

/* Returns the bytes of the records of all maps. */
static ull map_lines(const struct launch_record *r)
{
    ull total = 0;
    for (size_t i = 0; i < r->probe->n_maps; i++)
        total += map_line(r, i);
    return total;
}

/* The bytes that the records of a launch that was not probed would take. */
static void size_lines(const struct launch_record *r)
{
    size_t device = 0;
    const ull total = map_lines(r);
    layout_device_size(r->probe, r->capacities, r->grid, r->block, &device);
    const char *probe = r->probe->name;
    log_file_append("[exec] probe-mem %llu (bytes) device %zu launch %llu%s%s\n", total, device, (ull)r->number,
                    probe ? " probe " : "", probe ? probe : "");
}

static void probed_lines(const struct launch_record *r)
{
    parameters_line(r);
    log_file_append("[exec] grid %u %u %u block %u %u %u shared %u kernel %u launch %llu stream %llx\n", r->grid[0],
                    r->grid[1], r->grid[2], r->block[0], r->block[1], r->block[2], r->shared, r->kernel->index,
                    (ull)r->number, (ull)r->stream);
    const ull total = kernel_probe_leaves_records(r->probe) ? map_lines(r) : 0;
    log_file_append("[exec] probe-mem %llu (bytes)\n", total);
    log_file_append("[exec] %s %d\n", r->result == 0 ? "succeed" : "failed", r->result);
}

static uint64_t reported_limit; /* 1 + the limit that was reported as reached */

/* Once per limit; the lock of the log's file is held. */
static void tell_limit(void)
{
    const struct control_budget *budget = &control->log_bytes;
    const char *name = "log-bytes";
    if (control_left(budget)) {
        budget = &control->trace_bytes;
        name = "trace-bytes";
    }
    if (reported_limit == atomic_load(&budget->limit) + 1)
        return;
    reported_limit = atomic_load(&budget->limit) + 1;
    log_file_append("[budget] %s reached limit %llu used %llu: unrecorded launches are counted but no longer listed;"
                    " allow more with --max-%s\n",
                    name, (ull)atomic_load(&budget->limit), (ull)atomic_load(&budget->used), name);
}

/* Recorded launches are listed: there are no more of those than result files. Not so launches that are only watched. */
static bool is_listed(const struct launch_record *r)
{
    if ((!r->reason && kernel_probe_leaves_records(r->probe)) || control_log_is_open())
        return true;
    atomic_fetch_add(&control->log_bytes.refused, 1);
    if (!r->reason || launch_reason_has_run(r->reason))
        atomic_fetch_add(&r->kernel->unlisted, 1);
    tell_limit();
    return false;
}

void launch_lines(const struct launch_record *r)
{
    if (!is_listed(r))
        return;
    if (!r->reason) {
        probed_lines(r);
        return;
    }
    log_file_append("[exec] backup %u %u %u block %u %u %u shared %u kernel %u launch %llu time %llu reason %s\n",
                    r->grid[0], r->grid[1], r->grid[2], r->block[0], r->block[1], r->block[2], r->shared,
                    r->kernel->index, (ull)r->number, (ull)r->time, r->reason->written);
    if (r->result)
        log_file_append("[exec] failed %d\n", r->result);
    else if (r->probe)
        size_lines(r);
}

void launch_lines_reset(void)
{
    reported_limit = 0;
}

#include "positions.h"

#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "layout.h"
#include "reasons.h"
#include "resident.h"
#include "result.h"
#include "watched_launches.h"

/* Of a grid with more resident blocks than this takes, which lie far apart, only the first have a place. */
enum { MOST_BYTES = 64 << 20 };

/* Blocks that have ended are in the result if it does not get larger than this by them. */
enum { MOST_BYTES_OF_ENDED = 4 << 20 };

/* The records of the warps of a launch, as a chunk would have them. */
struct records {
    const struct watched_launch *launch;
    struct capacities *blocks; /* those in the result */
    struct extent extent;
    uint8_t *bytes;
};

bool positions_warp(const uint8_t *slot, struct resident_warp *warp)
{
    struct resident_lanes lanes;
    memcpy(&lanes, slot, sizeof lanes);
    memcpy(warp, slot + RESIDENT_ALIGNMENT, sizeof *warp);
    return lanes.entered != lanes.left;
}

/* A warp that has ended leaves its records until another has the slot: its last arrival may explain why others wait. */
static bool had_warp(const uint8_t *slot)
{
    struct resident_lanes lanes;
    memcpy(&lanes, slot, sizeof lanes);
    return lanes.entered;
}

static uint64_t warp_bytes(const struct kernel_probe *probe)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < probe->n_maps; i++)
        bytes += layout_stride(&probe->maps[i], 1);
    return bytes;
}

/* The blocks that BYTES have room for. */
static uint64_t room_of(const struct watched_launch *launch, uint64_t bytes)
{
    const uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    return bytes / (warp_bytes(launch->probe) * ((threads + WARP_THREADS - 1) / WARP_THREADS));
}

static uint64_t blocks_of(const struct watched_launch *launch, const struct found_warps *found)
{
    const uint64_t room = room_of(launch, MOST_BYTES);
    const uint64_t wanted = (uint64_t)found->last_block - found->first_block + 1;
    return wanted < room ? wanted : room;
}

static bool begin(struct records *records, const struct watched_launch *launch, const struct found_warps *found)
{
    const size_t n_maps = launch->probe->n_maps;
    const uint64_t blocks = blocks_of(launch, found);
    *records = (struct records){.launch = launch};
    records->blocks = calloc(1, sizeof *records->blocks + n_maps * sizeof(uint32_t));
    if (!records->blocks)
        return false;
    if (blocks < (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2])
        records->blocks->range = (struct sampling){SAMPLE_RANGE, found->first_block, found->first_block + blocks - 1};
    for (size_t i = 0; i < n_maps; i++)
        records->blocks->of[i] = 1;
    layout_extent(&records->extent, launch->probe, records->blocks, launch->grid, launch->block);
    records->bytes = calloc(blocks * records->extent.warps, warp_bytes(launch->probe));
    return records->bytes;
}

/* Puts the record of the warp that has SLOT, and its mark, into each map. */
static void put(const struct records *records, const uint8_t *slot, size_t place)
{
    const struct kernel_probe *probe = records->launch->probe;
    const uint32_t mark = 1;
    uint8_t *to = records->bytes;
    for (size_t i = 0; i < probe->n_maps; i++) {
        const struct map *map = &probe->maps[i];
        const size_t stride = (size_t)layout_stride(map, 1);
        memcpy(to + place * stride, slot, map->record);
        memcpy(to + place * stride + map->record, &mark, sizeof mark);
        slot += resident_record_size(map);
        to += records->extent.blocks * records->extent.warps * stride;
    }
}

static uint32_t put_all(const struct records *records, const uint8_t *table, uint32_t first_block)
{
    const size_t slot_size = resident_slot_size(records->launch->probe);
    uint32_t left_out = 0;
    for (size_t i = 0; i < RESIDENT_SLOTS; i++) {
        const uint8_t *slot = table + i * slot_size;
        struct resident_warp warp;
        const bool is_there = positions_warp(slot, &warp);
        if ((!is_there && !had_warp(slot)) || warp.launch != records->launch->number)
            continue;
        if (warp.warp < records->extent.warps && warp.block >= first_block &&
            warp.block - first_block < records->extent.blocks)
            put(records, slot, (warp.block - first_block) * records->extent.warps + warp.warp);
        else
            left_out += is_there;
    }
    return left_out;
}

/* Extends FOUND to the warps of LAUNCH that have ended in blocks before (SIDE -1) or behind (1) those on the GPU: one may
 * hold a lock, and blocks behind them have started. */
static void add_ended(struct found_warps *found, const struct watched_launch *launch, const uint8_t *table, int side)
{
    const size_t slot_size = resident_slot_size(launch->probe);
    const uint64_t room = room_of(launch, MOST_BYTES_OF_ENDED);
    const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    const struct found_warps known = *found;
    for (size_t i = 0; i < RESIDENT_SLOTS; i++) {
        struct resident_warp warp;
        if (positions_warp(table + i * slot_size, &warp) || !had_warp(table + i * slot_size) ||
            warp.launch != launch->number || warp.block >= blocks)
            continue;
        if (side < 0 && warp.block < found->first_block && known.last_block - (uint64_t)warp.block < room)
            found->first_block = warp.block;
        if (side > 0 && warp.block > found->last_block && warp.block - (uint64_t)known.first_block < room)
            found->last_block = warp.block;
    }
}

static const void *read_records(void *argument, size_t offset, size_t size)
{
    (void)size;
    return (const uint8_t *)argument + offset;
}

static const struct reason *write_result(const struct records *records)
{
    const struct watched_launch *launch = records->launch;
    struct piece piece = {.stamp = result_stamp(launch->time),
                          .number = launch->number,
                          .probe = launch->probe,
                          .capacities = records->blocks,
                          .group = launch->group,
                          .shared = launch->shared};
    memcpy(piece.grid, launch->grid, sizeof piece.grid);
    memcpy(piece.block, launch->block, sizeof piece.block);
    size_t saved = 0;
    layout_saved_size(launch->probe, records->blocks, launch->grid, launch->block, &saved);
    const struct reason *reason = result_reserve(launch->probe, saved);
    struct result_source source = {.read = read_records, .argument = records->bytes, .window = SIZE_MAX};
    if (!reason && !result_write(&piece, &source))
        reason = result_stopped();
    return reason;
}

const struct reason *positions_write(const struct watched_launch *launch, const uint8_t *table,
                                     const struct found_warps *found, uint32_t *left_out)
{
    struct records records;
    struct found_warps known = *found;
    add_ended(&known, launch, table, -1);
    add_ended(&known, launch, table, 1);
    if (!begin(&records, launch, &known)) {
        free(records.blocks);
        return reason(HOST_MEMORY);
    }
    *left_out = put_all(&records, table, known.first_block);
    const struct reason *reason = write_result(&records);
    free(records.bytes);
    free(records.blocks); /* the log has the launch without it */
    return reason;
}

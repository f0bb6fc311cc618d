#include "convert.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_AT_A_TIME = 16 };

#define COUNT_UNKNOWN UINT32_MAX

/* Bytes that are in the file as on the device. */
static bool copy(struct conversion *c, uint64_t offset, uint64_t size)
{
    while (size) {
        size_t part = size < convert_window(c) ? (size_t)size : convert_window(c);
        const void *bytes = convert_fetch(c, offset, part);
        if (!bytes || !output_append(c->records, bytes, part))
            return false;
        offset += part;
        size -= part;
    }
    return true;
}

/* Marked: the marks become one bit per slot, the lowest bit first. */

static bool put_mark(struct conversion *c, uint64_t slot, bool last, bool mark, uint8_t *bits)
{
    *bits |= (uint8_t)(mark << (slot % 8));
    if (slot % 8 != 7 && !last)
        return true;
    uint8_t byte = *bits;
    *bits = 0;
    return output_append(c->second, &byte, 1);
}

static bool convert_marked(struct conversion *c)
{
    const size_t record = c->map->record, stride = (size_t)layout_stride(c->map, c->cap);
    const uint64_t slots = c->extent.blocks * layout_slots(c->map, &c->extent);
    uint64_t slot = 0;
    uint8_t bits = 0;
    while (slot < slots) {
        size_t n = slots - slot < convert_window(c) / stride ? (size_t)(slots - slot) : convert_window(c) / stride;
        const uint8_t *bytes = convert_fetch(c, slot * stride, n * stride);
        if (!bytes)
            return false;
        for (; n; n--, slot++, bytes += stride) {
            uint32_t mark;
            memcpy(&mark, bytes + record, sizeof mark);
            if (!output_append(c->records, bytes, record) || !put_mark(c, slot, slot + 1 == slots, mark != 0, &bits))
                return false;
        }
    }
    return true;
}

/* Sites: the copies are added up, each read from front to back; of one field the largest value counts. */

static bool add_copy(struct conversion *c, uint64_t from, uint64_t *sums, size_t words)
{
    for (size_t first = 0, n; first < words; first += n) {
        n = words - first < convert_window(c) / sizeof *sums ? words - first : convert_window(c) / sizeof *sums;
        const uint8_t *bytes = convert_fetch(c, from + first * sizeof *sums, n * sizeof *sums);
        if (!bytes)
            return false;
        for (size_t i = 0; i < n; i++) {
            uint64_t word;
            memcpy(&word, bytes + i * sizeof word, sizeof word);
            uint64_t *sum = &sums[first + i];
            const bool is_max = (first + i) * sizeof word % c->map->record == c->map->max;
            *sum = !is_max ? *sum + word : word > *sum ? word : *sum;
        }
    }
    return true;
}

static bool convert_sites(struct conversion *c)
{
    const size_t n_sums = (size_t)(layout_sites(c->map) / sizeof(uint64_t));
    uint64_t *sums = calloc(n_sums + 1, sizeof *sums);
    bool added = sums != NULL;
    for (uint32_t copy = 0; added && copy < c->map->copies; copy++)
        added = add_copy(c, copy * layout_stride(c->map, c->cap), sums, n_sums);
    for (size_t at = 0; added && at < n_sums; at += c->map->record / sizeof *sums)
        c->first = sums[at] > c->first ? sums[at] : c->first;
    added = added && output_append(c->second, sums, n_sums * sizeof *sums);
    free(sums);
    return added;
}

/* Rows and queues: what is behind the records kept is zero in the file, no matter what it is on the device. */

/* COUNT is 1 + the attempts, or 0 where they are unknown; MORE are attempts that were counted elsewhere. */
static bool put_count(struct conversion *c, uint32_t count, uint32_t more)
{
    uint64_t known = (count ? (uint64_t)count - 1 : 0) + more;
    uint32_t attempts = !count ? COUNT_UNKNOWN : known < COUNT_UNKNOWN ? (uint32_t)known : COUNT_UNKNOWN - 1;
    if (known > c->most)
        c->most = known;
    return output_append(c->second, &attempts, sizeof attempts);
}

/* If the number is unknown all records stay as they are, zeros where there are none. */
static uint32_t kept_of(const struct conversion *c, uint32_t count)
{
    return count && count - 1 < c->cap ? count - 1 : c->cap;
}

static uint32_t strays_of(const struct conversion *c, const uint32_t header[2], uint32_t kept)
{
    return header[1] < c->cap - kept ? header[1] : c->cap - kept;
}

static bool put_queue(struct conversion *c, uint64_t at)
{
    const uint64_t record = c->map->record, strays_at = at + QUEUE_HEADER_BYTES + c->cap * record;
    uint32_t header[2];
    const void *bytes = convert_fetch(c, at, sizeof header);
    if (!bytes)
        return false;
    memcpy(header, bytes, sizeof header);
    uint32_t n_records = kept_of(c, header[0]), strays = strays_of(c, header, n_records);
    return put_count(c, header[0], header[1]) && copy(c, at + QUEUE_HEADER_BYTES, n_records * record) &&
           copy(c, strays_at, strays * record) && output_zeros(c->records, (c->file_cap - n_records - strays) * record);
}

static bool convert_queue(struct conversion *c)
{
    const uint64_t stride = layout_stride(c->map, c->cap);
    for (uint64_t slot = 0; slot < c->extent.blocks * c->extent.warps; slot++)
        if (!put_queue(c, slot * stride))
            return false;
    return true;
}

/* One lane's records out of the rows, for a unit that the compiler knows. */
static inline void gather(uint8_t *to, const uint8_t *rows, size_t records, size_t columns, size_t unit)
{
    for (size_t i = 0; i < records * columns; i++)
        memcpy(to + i * unit, rows + i * unit * WARP_THREADS, unit);
}

/* The same of a map whose lanes 0 and 1 may have saved for their warp: then the first field rises evenly from lane to
 * lane, and the others are those of lane 0. */
static void gather_even(uint8_t *to, const uint8_t *rows, size_t lane, size_t records)
{
    enum { FIRST = sizeof(uint64_t), LAST = EVEN_RECORD_BYTES - sizeof(uint32_t) };
    for (; records; records--, to += EVEN_RECORD_BYTES, rows += EVEN_RECORD_BYTES * WARP_THREADS) {
        uint64_t first, second;
        uint32_t last;
        memcpy(&last, rows + LAST, sizeof last);
        memcpy(to, rows + (last & EVEN_MARK ? 0 : lane * EVEN_RECORD_BYTES), EVEN_RECORD_BYTES);
        if (!(last & EVEN_MARK))
            continue;
        memcpy(&first, rows, FIRST);
        memcpy(&second, rows + EVEN_RECORD_BYTES, FIRST);
        first += lane * (second - first);
        last &= ~EVEN_MARK;
        memcpy(to, &first, FIRST);
        memcpy(to + LAST, &last, sizeof last);
    }
}

static void gather_lane(const struct map *map, uint8_t *to, const uint8_t *rows, size_t lane, size_t records)
{
    const size_t unit = layout_unit(map), columns = map->record / unit;
    if (map->even) {
        gather_even(to, rows, lane, records);
        return;
    }
    rows += lane * unit;
    if (unit == 16)
        gather(to, rows, records, columns, 16);
    else if (unit == 8)
        gather(to, rows, records, columns, 8);
    else
        gather(to, rows, records, columns, 4);
}

struct warp {
    size_t lanes;
    uint32_t kept[WARP_THREADS], most;
};

static bool put_counts(struct conversion *c, uint64_t at, struct warp *warp)
{
    const uint8_t *row = convert_fetch(c, at, WARP_THREADS * sizeof(uint32_t));
    warp->most = 0;
    for (size_t lane = 0; row && lane < warp->lanes; lane++) {
        uint32_t count;
        memcpy(&count, row + lane * sizeof count, sizeof count);
        warp->kept[lane] = kept_of(c, count);
        if (warp->kept[lane] > warp->most)
            warp->most = warp->kept[lane];
        if (!put_count(c, count, 0))
            return false;
    }
    return row;
}

/* A few records of all lanes at a time, which the first cache holds. */
static bool put_rows(struct conversion *c, uint64_t at, const struct warp *warp)
{
    const size_t record = c->map->record, slot = (size_t)layout_slot(c->map, c->file_cap);
    const uint8_t *rows = convert_fetch(c, at, (size_t)warp->most * record * WARP_THREADS);
    uint8_t *to = rows ? output_room(c->records, warp->lanes * slot) : NULL;
    if (!to)
        return false;
    for (size_t first = 0; first < warp->most; first += ROWS_AT_A_TIME)
        for (size_t lane = 0; lane < warp->lanes; lane++) {
            size_t n = warp->kept[lane] > first ? warp->kept[lane] - first : 0;
            gather_lane(c->map, to + lane * slot + first * record, rows + first * record * WARP_THREADS, lane,
                        n < ROWS_AT_A_TIME ? n : ROWS_AT_A_TIME);
        }
    for (size_t lane = 0; lane < warp->lanes; lane++)
        memset(to + lane * slot + warp->kept[lane] * record, 0, slot - warp->kept[lane] * record);
    return true;
}

/* The same for slots too large for that: each window of rows is dealt out over the lanes' places in the file.
 * What is not written there reads as zeros. */
static bool put_large_rows(struct conversion *c, uint64_t at, const struct warp *warp)
{
    const size_t record = c->map->record, row = record * WARP_THREADS;
    const uint64_t slot = layout_slot(c->map, c->file_cap);
    struct output *o = c->records;
    if (!output_flush(o))
        return false;
    for (size_t first = 0, n; first < warp->most; first += n) {
        n = warp->most - first < convert_window(c) / row ? warp->most - first : convert_window(c) / row;
        const uint8_t *rows = convert_fetch(c, at + first * row, n * row);
        for (size_t lane = 0; rows && lane < warp->lanes; lane++) {
            size_t n_records = warp->kept[lane] > first ? warp->kept[lane] - first : 0;
            n_records = n_records < n ? n_records : n;
            gather_lane(c->map, o->bytes, rows, lane, n_records);
            if (!output_write(o->file, o->at + lane * slot + first * record, o->bytes, n_records * record))
                return false;
        }
        if (!rows)
            return false;
    }
    o->at += warp->lanes * slot;
    return true;
}

static bool convert_rows(struct conversion *c)
{
    const uint64_t stride = layout_stride(c->map, c->cap), header = WARP_THREADS * layout_unit(c->map);
    const bool large = stride > convert_window(c);
    for (uint64_t i = 0; i < c->extent.blocks * c->extent.warps; i++) {
        uint64_t first = i % c->extent.warps * WARP_THREADS, left = c->extent.threads - first;
        struct warp warp = {.lanes = left < WARP_THREADS ? (size_t)left : WARP_THREADS};
        if (!put_counts(c, i * stride, &warp) || !(large ? put_large_rows : put_rows)(c, i * stride + header, &warp))
            return false;
    }
    return true;
}

/* The maximum number of records in the slots of a warp; -1 if the source refuses. */

static int64_t most_in_queue(struct conversion *c, uint64_t at)
{
    uint32_t header[2];
    const void *bytes = convert_fetch(c, at, sizeof header);
    if (!bytes)
        return -1;
    memcpy(header, bytes, sizeof header);
    uint32_t n_records = kept_of(c, header[0]);
    return (int64_t)n_records + strays_of(c, header, n_records);
}

static int64_t most_in_rows(struct conversion *c, uint64_t at, uint32_t lanes)
{
    const uint8_t *counts = convert_fetch(c, at, lanes * sizeof(uint32_t));
    int64_t most = 0;
    for (uint32_t lane = 0; counts && lane < lanes; lane++) {
        uint32_t count;
        memcpy(&count, counts + lane * sizeof count, sizeof count);
        most = kept_of(c, count) > most ? kept_of(c, count) : most;
    }
    return counts ? most : -1;
}

bool convert_count(struct conversion *c, uint32_t *cap)
{
    const bool rows = c->map->layout == MAP_ROWS;
    const uint64_t stride = layout_stride(c->map, c->cap);
    *cap = 1; /* a slot of nothing is not a slot */
    for (uint64_t i = 0; i < c->extent.blocks * c->extent.warps && *cap < c->cap; i++) {
        uint64_t left = c->extent.threads - i % c->extent.warps * WARP_THREADS;
        uint32_t lanes = (uint32_t)(left < WARP_THREADS ? left : WARP_THREADS);
        int64_t most = rows ? most_in_rows(c, i * stride, lanes) : most_in_queue(c, i * stride);
        if (most < 0)
            return false;
        *cap = most > *cap ? (uint32_t)most : *cap;
    }
    return true;
}

bool convert_map(struct conversion *c)
{
    if (layout_reduces(c->map, &c->extent))
        return convert_reduced(c);
    switch (c->map->layout) {
    case MAP_MARKED:
    case MAP_RESIDENT:
        return convert_marked(c);
    case MAP_ROWS:
        return convert_rows(c);
    case MAP_QUEUE:
        return convert_queue(c);
    case MAP_COUNTS:
        return true; /* written with the map before it */
    case MAP_SITES:
        return convert_sites(c);
    default:
        return copy(c, 0, c->extent.blocks * layout_slots(c->map, &c->extent) * layout_slot(c->map, c->cap));
    }
}

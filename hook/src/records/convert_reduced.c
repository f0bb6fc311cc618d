/* Reduced maps: groups of slots become a record each. */
#include <stdlib.h>
#include <string.h>

#include "convert.h"

enum { AT_A_TIME = 32 << 10 }; /* bytes that are gone through once for each field: the first cache holds them */

struct groups {
    struct conversion *c;
    struct reducing reducing;
    uint8_t *record, *saved, *mixed; /* one record; a bit for each group */
    uint64_t missing;
};

/* The next slots of the group at hand, N of them from slot AT of the map. */
static bool add_slots(struct groups *g, uint64_t at, uint64_t n)
{
    const struct map *map = g->c->map;
    const size_t stride = (size_t)layout_stride(map, g->c->cap);
    const size_t room = convert_window(g->c) < AT_A_TIME ? convert_window(g->c) : AT_A_TIME;
    while (n) {
        const size_t part = n < room / stride ? (size_t)n : room / stride;
        const uint8_t *bytes = convert_fetch(g->c, at * stride, part * stride);
        if (!bytes)
            return false;
        reduce_add(&g->reducing, &(struct slots){bytes, part, stride, map->record, map->layout == MAP_MARKED});
        at += part;
        n -= part;
    }
    return true;
}

static bool put_group(struct groups *g, uint64_t group, uint64_t at, uint64_t n)
{
    reduce_begin(&g->reducing);
    if (!add_slots(g, at, n))
        return false;
    reduce_end(&g->reducing, g->record);
    if (g->c->map->reduction->level == REDUCE_LAUNCH && g->c->map->reduction->record >= sizeof g->c->first)
        memcpy(&g->c->first, g->record, sizeof g->c->first);
    const uint64_t saved = g->reducing.saved;
    g->saved[group / 8] |= (uint8_t)((saved != 0) << (group % 8));
    g->mixed[group / 8] |= (uint8_t)(g->reducing.mixed << (group % 8));
    g->missing += saved ? n - saved : 0;
    return output_append(g->c->second, g->record, g->c->map->reduction->record);
}

/* A block's last warp may have fewer threads than the others. */
static bool put_warps(struct groups *g)
{
    const struct extent *extent = &g->c->extent;
    for (uint64_t group = 0; group < extent->blocks * extent->warps; group++) {
        const uint64_t first = group % extent->warps * WARP_THREADS, left = extent->threads - first;
        const uint64_t at = group / extent->warps * extent->threads + first;
        if (!put_group(g, group, at, left < WARP_THREADS ? left : WARP_THREADS))
            return false;
    }
    return true;
}

static bool put_groups(struct groups *g)
{
    const struct map *map = g->c->map;
    const struct extent *extent = &g->c->extent;
    const uint64_t groups = layout_groups(map, extent), n = layout_device_slots(map, extent) / groups;
    if (map->reduction->level == REDUCE_WARP)
        return put_warps(g);
    for (uint64_t group = 0; group < groups; group++)
        if (!put_group(g, group, group * n, n))
            return false;
    return true;
}

bool convert_reduced(struct conversion *c)
{
    const struct reduction *reduction = c->map->reduction;
    const size_t bits = (size_t)layout_group_bits(c->map, &c->extent);
    const uint32_t head[2] = {reduction->level, 0};
    struct groups g = {.c = c, .record = malloc(reduction->record), .saved = calloc(2, bits)};
    g.mixed = g.saved ? g.saved + bits : NULL;
    bool done = reduce_start(&g.reducing, reduction) && g.record && g.saved &&
                output_append(c->second, head, sizeof head) && put_groups(&g) &&
                output_append(c->second, g.saved, 2 * bits) && output_append(c->second, &g.missing, sizeof g.missing);
    reduce_stop(&g.reducing);
    free(g.record);
    free(g.saved);
    return done;
}

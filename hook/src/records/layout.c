#include "layout.h"

#include "buffers.h"

bool layout_extent(struct extent *extent, const struct kernel_probe *probe, const struct capacities *capacities,
                   const uint32_t grid[3], const uint32_t block[3])
{
    const struct sampling spread = {SAMPLE_SPREAD, 0, capacities ? capacities->sample : 0};
    extent->threads = (uint64_t)block[0] * block[1] * block[2];
    extent->warps = (extent->threads + WARP_THREADS - 1) / WARP_THREADS;
    if (__builtin_mul_overflow((uint64_t)grid[0] * grid[1], (uint64_t)grid[2], &extent->blocks))
        return false;
    const bool in_range = capacities && capacities->range.kind == SAMPLE_RANGE;
    const struct sampling *chosen = in_range ? &capacities->range : spread.last ? &spread : &probe->sampling;
    extent->sampled = sampling_of(chosen, extent->blocks);
    extent->is_sample = in_range || probe->sampled || spread.last;
    extent->in_detail = probe->detail && !(capacities && capacities->reduced);
    extent->blocks = extent->sampled.count;
    return true;
}

static bool product(uint64_t a, uint64_t b, uint64_t c, uint64_t *bytes)
{
    return !__builtin_mul_overflow(a, b, bytes) && !__builtin_mul_overflow(*bytes, c, bytes) && *bytes < SIZE_MAX / 2;
}

uint32_t layout_unit(const struct map *map)
{
    return map->record % 16 == 0 ? 16 : map->record % 8 == 0 ? 8 : 4;
}

uint64_t layout_stride(const struct map *map, uint32_t cap)
{
    switch (map->layout) {
    case MAP_MARKED:
    case MAP_RESIDENT:
        return (uint64_t)map->record + layout_unit(map);
    case MAP_ROWS:
        return WARP_THREADS * (layout_unit(map) + layout_slot(map, cap));
    case MAP_QUEUE:
        return QUEUE_HEADER_BYTES + 2 * layout_slot(map, cap);
    case MAP_COUNTS:
        return 0;
    case MAP_SITES:
        return (layout_sites(map) / SITE_PITCH + (layout_sites(map) % SITE_PITCH != 0 || !map->sites)) * SITE_PITCH;
    default:
        return layout_slot(map, cap);
    }
}

uint64_t layout_groups(const struct map *map, const struct extent *extent)
{
    switch (map->reduction->level) {
    case REDUCE_WARP:
        return extent->blocks * extent->warps;
    case REDUCE_BLOCK:
        return extent->blocks;
    default:
        return 1;
    }
}

uint64_t layout_group_bits(const struct map *map, const struct extent *extent)
{
    return (layout_groups(map, extent) + 7) / 8;
}

uint64_t layout_reduced(const struct map *map, const struct extent *extent)
{
    return REDUCED_HEAD_BYTES + layout_groups(map, extent) * map->reduction->record +
           2 * layout_group_bits(map, extent) + sizeof(uint64_t);
}

bool layout_reduces(const struct map *map, const struct extent *extent)
{
    uint64_t whole;
    if (map->layout == MAP_FOLDED)
        return true;
    return map->reduction && !extent->in_detail &&
           (!product(extent->blocks, layout_slots(map, extent), map->record, &whole) ||
            layout_reduced(map, extent) < whole);
}

bool layout_file_bytes(const struct map *map, uint32_t cap, const struct extent *extent, uint64_t *bytes)
{
    uint64_t slot = layout_reduces(map, extent) ? 0 : layout_slot(map, cap);
    return slot <= UINT32_MAX && product(extent->blocks, layout_slots(map, extent), slot, bytes);
}

static bool device_bytes(const struct map *map, uint32_t cap, const struct extent *extent, uint64_t *bytes)
{
    uint64_t groups = map->layout == MAP_ROWS ? extent->warps : layout_slots(map, extent);
    uint64_t stride = layout_stride(map, cap);
    if (map->layout == MAP_SITES)
        return product(map->copies, stride, 1, bytes);
    if (map->layout == MAP_RESIDENT)
        return product(0, 0, 0, bytes);
    if (map->layout == MAP_FOLDED)
        return product(FOLDED_SLOTS, stride, 1, bytes);
    if (!product(extent->blocks, groups, stride, bytes))
        return false;
    if (map->layout == MAP_ROWS)
        return *bytes / layout_unit(map) <= UINT32_MAX;
    return extent->blocks * groups <= UINT32_MAX && (map->layout != MAP_QUEUE || stride <= UINT32_MAX);
}

uint64_t layout_source_size(const struct map *map, const struct extent *extent, size_t device_size)
{
    if (map->layout != MAP_RESIDENT)
        return device_size;
    return extent->blocks * layout_slots(map, extent) * layout_stride(map, map->cap);
}

static size_t aligned(size_t size)
{
    return (size + BUFFER_ALIGNMENT - 1) / BUFFER_ALIGNMENT * BUFFER_ALIGNMENT;
}

bool layout_device_map(const struct kernel_probe *probe, size_t map, const struct capacities *capacities,
                       const uint32_t grid[3], const uint32_t block[3], size_t *size)
{
    struct extent extent;
    uint64_t file, device;
    uint32_t cap = layout_cap(probe, map, capacities);
    if (!layout_extent(&extent, probe, capacities, grid, block) ||
        !layout_file_bytes(&probe->maps[map], cap, &extent, &file) ||
        !device_bytes(&probe->maps[map], cap, &extent, &device))
        return false;
    *size = aligned((size_t)device);
    return true;
}

bool layout_device_size(const struct kernel_probe *probe, const struct capacities *capacities, const uint32_t grid[3],
                        const uint32_t block[3], size_t *size)
{
    *size = 0;
    for (size_t i = 0; i < probe->n_maps; i++) {
        size_t map;
        if (!layout_device_map(probe, i, capacities, grid, block, &map) || *size > SIZE_MAX / 2)
            return false;
        *size += map;
    }
    return true;
}

bool layout_saved_size(const struct kernel_probe *probe, const struct capacities *capacities, const uint32_t grid[3],
                       const uint32_t block[3], size_t *size)
{
    struct extent extent;
    if (!layout_extent(&extent, probe, capacities, grid, block))
        return false;
    *size = 0;
    for (size_t i = 0; i < probe->n_maps; i++) {
        const struct map *map = &probe->maps[i];
        size_t bytes;
        if (layout_reduces(map, &extent))
            bytes = (size_t)layout_reduced(map, &extent) + REDUCED_ABOUT_BYTES;
        else if (!layout_device_map(probe, i, capacities, grid, block, &bytes))
            return false;
        *size += bytes;
    }
    return true;
}

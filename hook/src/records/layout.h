/* The layout of the records of a map on the device, and its size. The engine's names:
 *
 * plain    slot after slot, as in the result file.
 * marked   slot = a record, and behind it a u32 that is 1 once it was written (padded to the record's unit).
 * rows     warp = a row that begins with 32 counts, then for each record one row per column; row = 32 lanes of a unit.
 *          A record is cut into columns of a unit: 16, 8 or 4 bytes, the largest that divides it.
 *          A block's last warp has all of its rows, however many lanes it has.
 * queue    slot = u32 count, u32 strays, 8 bytes unused; cap records of lane 0; cap records of lanes without lane 0.
 * counts   of the map before it: none of its own.
 * sites    copies of a record for each probed instruction, each copy padded to SITE_PITCH bytes; warps add to one of
 *          them. The file has their sum behind the maps, and no bytes in the slots of warps.
 * folded   plain slots that the warps of a launch share, FOLDED_SLOTS of them. The file has only their sum: the map is
 *          reduced, for any launch size.
 * resident slots of the table of a context (resident.h). A launch takes no memory for them, and leaves a result only
 *          where the watchdog makes one: out of host memory, in which they are as if marked.
 *
 * A count is 1 + the attempts to save; 0: the lane ended in a way that told none.
 *
 * A plain or marked map that is reduced has no bytes in the slots of the file, either, but behind the maps:
 *
 *     u32 level (enum reduce_level), u32 0; a record for each group of slots; a bit for each group, the lowest of a byte
 *     first: some slot was saved; another for each: its records differ where they are the same as a rule; u64 slots that
 *     were not saved in groups where another was
 */
#ifndef TUI_PROBE_LAYOUT_H
#define TUI_PROBE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "reduce.h"
#include "sampling.h"

enum { WARP_THREADS = 32, QUEUE_HEADER_BYTES = 16, SITE_PITCH = 256, FOLDED_SLOTS = 64 * 64, REDUCED_HEAD_BYTES = 8 };
#define EVEN_MARK UINT32_C(0x80000000)
enum { REDUCED_ABOUT_BYTES = 32 }; /* at most what a file says of a reduced map besides */

/* Capacities of one launch; constant, never freed. */
struct capacities {
    struct capacities *next;
    uint64_t sample; /* blocks that are measured, spread over the grid; 0: those of the probe */
    struct sampling range; /* of SAMPLE_RANGE: the blocks that the watchdog has found */
    bool reduced;    /* maps that can be reduced are, with --detail as well */
    uint32_t of[];   /* records per slot of each map */
};

/* A grid, as the maps of a probe see it: the blocks that are measured, and the threads and warps of each. */
struct extent {
    uint64_t blocks, threads, warps;
    struct sampled sampled; /* which blocks of the grid those are */
    bool is_sample;         /* the kernel is given which */
    bool in_detail;         /* no map is reduced */
};

/* False if it does not fit 64 bits. */
bool layout_extent(struct extent *extent, const struct kernel_probe *probe, const struct capacities *capacities,
                   const uint32_t grid[3], const uint32_t block[3]);

/* Records per slot. */
static inline uint32_t layout_cap(const struct kernel_probe *probe, size_t map, const struct capacities *capacities)
{
    return probe->maps[map].cap ? probe->maps[map].cap : capacities->of[map];
}

/* Bytes of a slot in the file, unless the map is reduced. */
static inline uint64_t layout_slot(const struct map *map, uint32_t cap)
{
    return map->layout == MAP_SITES ? 0 : (uint64_t)cap * map->record;
}

/* Bytes of the sums of all sites. */
static inline uint64_t layout_sites(const struct map *map)
{
    return (uint64_t)map->sites * map->record;
}

/* Slots that a block has in the file. */
static inline uint64_t layout_slots(const struct map *map, const struct extent *extent)
{
    return map->level == MAP_WARP ? extent->warps : extent->threads;
}

/* Slots of a plain, marked or folded map on the device. */
static inline uint64_t layout_device_slots(const struct map *map, const struct extent *extent)
{
    return map->layout == MAP_FOLDED ? FOLDED_SLOTS : extent->blocks * layout_slots(map, extent);
}

/* True if less than all of its records is saved of a map: where that takes less room. */
bool layout_reduces(const struct map *map, const struct extent *extent);

/* Records that are left of a reduced map, bytes of a bit for each, and bytes of it all. */
uint64_t layout_groups(const struct map *map, const struct extent *extent);
uint64_t layout_group_bits(const struct map *map, const struct extent *extent);
uint64_t layout_reduced(const struct map *map, const struct extent *extent);

uint32_t layout_unit(const struct map *map);

/* Bytes in the memory that a result is made of: that of the launch, but for resident maps. */
uint64_t layout_source_size(const struct map *map, const struct extent *extent, size_t device_size);

/* Bytes on the device of a slot, or in rows of a warp, or of a copy of sites; 0 for counts. */
uint64_t layout_stride(const struct map *map, uint32_t cap);

/* Bytes of the whole map in the file. False if they do not fit 64 bits. */
bool layout_file_bytes(const struct map *map, uint32_t cap, const struct extent *extent, uint64_t *bytes);

/* Bytes on the device of one map's records for a launch, aligned, and of all maps together. False if they fit no
 * memory, or places in a map not the 32 bits that kernels count in. */
bool layout_device_map(const struct kernel_probe *probe, size_t map, const struct capacities *capacities,
                       const uint32_t grid[3], const uint32_t block[3], size_t *size);
bool layout_device_size(const struct kernel_probe *probe, const struct capacities *capacities, const uint32_t grid[3],
                        const uint32_t block[3], size_t *size);

/* The most that the file of a launch has behind its header: as much as is on the device, but for reduced maps. False
 * where the other is. */
bool layout_saved_size(const struct kernel_probe *probe, const struct capacities *capacities, const uint32_t grid[3],
                       const uint32_t block[3], size_t *size);

#endif

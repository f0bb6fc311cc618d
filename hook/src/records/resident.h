/* The table of resident maps of a context: a slot for each warp that the device holds at a time, which kernels write and
 * the watchdog reads while they run: RESIDENT_SLOTS slots. A slot has a record of each map, one after the other.
 *
 * A probe with such maps has only such maps, and the run has one of them. The records of its first two begin with these
 * fields; the engine makes sure of that. */
#ifndef TUI_PROBE_RESIDENT_H
#define TUI_PROBE_RESIDENT_H

#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "kernel.h"

enum { RESIDENT_SLOTS = 256 * 64, RESIDENT_ALIGNMENT = 16 };

struct resident_lanes {
    uint32_t entered, left; /* equal where no warp has the slot */
};

struct resident_warp {
    uint64_t launch;
    uint32_t block, warp;
};

struct pool;

/* Bytes of a map in a slot, aligned as kernels expect; and of a slot, with all its maps. */
size_t resident_record_size(const struct map *map);
size_t resident_slot_size(const struct kernel_probe *probe);

/* The address of the table of POOL, whose context is current; made on first use. Returns why there is none, or NULL. */
const struct reason *resident_table(struct pool *pool, const struct kernel_probe *probe, CUdeviceptr *table);

#endif

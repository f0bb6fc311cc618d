/* The result of a launch that does not end: the records of its warps, out of a copy of the table of resident maps. */
#ifndef TUI_PROBE_POSITIONS_H
#define TUI_PROBE_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reason;
struct resident_warp;
struct watched_launch;

/* The warps of a launch in the table: how many, and the blocks that they belong to. */
struct found_warps {
    uint32_t n, first_block, last_block;
};

/* The warp that has SLOT of the table; false if none has. */
bool positions_warp(const uint8_t *slot, struct resident_warp *warp);

/* The result of LAUNCH, with FOUND in the table. Sets LEFT_OUT to the warps that have no room in it, which are
 * those of the last blocks. Returns why there is none, or NULL. */
const struct reason *positions_write(const struct watched_launch *launch, const uint8_t *table,
                                     const struct found_warps *found, uint32_t *left_out);

#endif

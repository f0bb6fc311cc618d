/* Capacities: the records of each launch. A slot of a dynamic map keeps an estimate of records, and more after a launch
 * that had more; a launch whose records would take too much keeps them of some blocks, or reduced. */
#ifndef TUI_PROBE_CAPACITIES_H
#define TUI_PROBE_CAPACITIES_H

#include "layout.h"

/* The first estimate. False without memory. */
bool capacities_begin(struct kernel_probe *probe);

/* Those for a launch, smaller ones if its records do not fit LIMIT bytes of the device; NULL without memory. */
const struct capacities *capacities_choose(struct kernel_probe *probe, const uint32_t grid[3], const uint32_t block[3],
                                           size_t limit);

/* No record of a dynamic map is kept: the launch only counts how many there were. NULL without memory. */
const struct capacities *capacities_counting(struct kernel_probe *probe);

/* The same as CAPACITIES, but reduced. NULL if that is not a less, or without memory. */
const struct capacities *capacities_reduced(struct kernel_probe *probe, const struct capacities *capacities);

/* Of as many blocks, spread over the grid, that the records take no more than MOST_DEVICE bytes on the device, and
 * MOST_SAVED in their file. NULL if that is too few to tell anything, or all, or without memory. */
const struct capacities *capacities_sample(struct kernel_probe *probe, const uint32_t grid[3], const uint32_t block[3],
                                           size_t most_device, size_t most_saved);

/* A slot of MAP was to keep this many records: from now on there is room for them. False if there was already, or there
 * cannot be. */
bool capacities_grow(struct kernel_probe *probe, size_t map, uint64_t attempts);

void capacities_reset(void);

#endif

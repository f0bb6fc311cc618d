/* How many records each slot of a dynamic map keeps: an estimate, and more after a launch that had more. */
#ifndef TUI_PROBE_CAPACITIES_H
#define TUI_PROBE_CAPACITIES_H

#include "layout.h"

/* The first estimate. False without memory. */
bool capacities_begin(struct probing *probing);

/* Those for a launch, smaller ones if two such launches do not fit LIMIT bytes; NULL if no map is dynamic, or
 * without memory. */
const struct capacities *capacities_choose(struct probing *probing, const uint32_t grid[3], const uint32_t block[3],
                                           size_t limit);

/* A slot of MAP was to keep this many records: from now on there is room for them. */
void capacities_grow(struct probing *probing, size_t map, uint64_t attempts);

void capacities_reset(void);

#endif

/* Records from the layout on the device to the layout of the file. */
#ifndef TUI_PROBE_CONVERT_H
#define TUI_PROBE_CONVERT_H

#include "layout.h"
#include "output.h"

struct result_source;

enum { CONVERT_BYTES = 4 << 20 };

struct conversion {
    const struct map *map;
    uint32_t cap;      /* records per slot on the device */
    uint32_t file_cap; /* and in the file, where no slot has more */
    struct extent extent;
    const struct result_source *source;
    uint64_t from;          /* where the map begins in the source */
    struct output *records; /* of the map */
    struct output *second;  /* counts of rows and queues, marks of a marked map, sums of sites */
    uint64_t most;          /* set: the largest number of attempts of a slot */
};

/* Sets KEPT to the most records that a slot of a dynamic map has. False if the source refused. */
bool convert_count(struct conversion *conversion, uint32_t *kept);

/* Writes all slots of a map. False if the source or the disk refused. */
bool convert_map(struct conversion *conversion);

#endif

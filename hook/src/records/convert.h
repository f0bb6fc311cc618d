/* Records from the layout on the device to the layout of the file. */
#ifndef TUI_PROBE_CONVERT_H
#define TUI_PROBE_CONVERT_H

#include <errno.h>

#include "layout.h"
#include "output.h"
#include "result.h"

enum { CONVERT_BYTES = 4 << 20 };

struct conversion {
    const struct map *map;
    uint32_t cap;      /* records per slot on the device */
    uint32_t file_cap; /* and in the file, where no slot has more */
    struct extent extent;
    const struct result_source *source;
    uint64_t from;          /* where the map begins in the source */
    struct output *records; /* of the map */
    struct output *second;  /* counts of rows and queues, marks of a marked map, sums of sites, a reduced map */
    uint64_t most;          /* set: the largest number of attempts of a slot */
    uint64_t first; /* set: of sites the largest first field, of a launch's reduced record its first 8 bytes */
};

/* Sets CAP to the most records that a slot of a dynamic map has. False if the source refused. */
bool convert_count(struct conversion *conversion, uint32_t *cap);

/* SIZE bytes, at most a window, at OFFSET of the map; NULL if the source refused. */
static inline const void *convert_fetch(struct conversion *c, uint64_t offset, size_t size)
{
    const void *bytes = c->source->read(c->source->argument, c->from + offset, size);
    if (!bytes)
        errno = 0; /* the driver's failure, not the disk's */
    return bytes;
}

static inline size_t convert_window(const struct conversion *c)
{
    return c->source->window < CONVERT_BYTES ? c->source->window : CONVERT_BYTES;
}

/* Writes what is left of a reduced map; as convert_map, which calls it. */
bool convert_reduced(struct conversion *conversion);

/* Writes all slots of a map. False if the source or the disk refused. */
bool convert_map(struct conversion *conversion);

#endif

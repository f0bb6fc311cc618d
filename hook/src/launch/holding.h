/* What a probed launch holds: memory for its records, and room in the trace for their file. Where all of its records would
 * take too much they are reduced, else those of a sample of blocks. */
#ifndef TUI_PROBE_HOLDING_H
#define TUI_PROBE_HOLDING_H

#include "buffers.h"
#include "launch.h"

struct holding {
    struct probing *probing;
    struct variant *variant; /* that is to be launched */
    struct chunk *chunk;
    struct claim claim;
    size_t size, saved; /* bytes of the records, and of what is saved of them */
};

/* Takes them for LAUNCH with PROBING in CONTEXT, which is current, and settles the launch's capacities. Returns why there
 * is no room, or NULL. */
const struct reason *holding_take(struct holding *holding, struct launch *launch, struct probing *probing,
                                  CUcontext context);

/* The launch has returned RESULT. From here on its records may be saved, and logged. */
void holding_launched(const struct holding *holding, const struct launch *launch, CUresult result);

#endif

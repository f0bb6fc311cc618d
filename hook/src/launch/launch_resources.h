/* The resources of a probed launch: memory for its records, and room in the trace for their file. Where all of its
 * records would take too much they are reduced, else those of a sample of blocks. */
#ifndef TUI_PROBE_LAUNCH_RESOURCES_H
#define TUI_PROBE_LAUNCH_RESOURCES_H

#include "buffers.h"
#include "launch.h"

struct launch_resources {
    struct kernel_probe *probe;
    struct variant *variant; /* that is to be launched */
    struct chunk *chunk;
    struct claim claim;
    size_t size; /* bytes of the records */
};

/* Takes them for LAUNCH with PROBE in CONTEXT, which is current, and settles the launch's capacities. Returns why there
 * is no room, or NULL. */
const struct reason *launch_resources_take(struct launch_resources *resources, struct launch *launch,
                                           struct kernel_probe *probe, CUcontext context);

/* True if PROBE is a fused one and REASON that a launch has no room for the records of all its parts: each of them may
 * have some. */
bool launch_resources_separate(const struct kernel_probe *probe, const struct reason *reason);

/* The launch has returned RESULT. From here on its records may be saved, and logged. */
void launch_resources_launched(const struct launch_resources *resources, const struct launch *launch, CUresult result);

#endif

/* Timed replays of executables, and their results. Times are read after a replay is over, when its
 * executable may be gone: this lives as long as either needs it. */
#ifndef TUI_PROBE_GRAPH_TIMES_H
#define TUI_PROBE_GRAPH_TIMES_H

#include <stdint.h>

#include "kernel.h"

struct graph_times {
    uint32_t id; /* of the executable */
    atomic_uint users;
    struct timed timed;
};

/* With one user. NULL without memory. */
struct graph_times *graph_times_make(uint32_t id);

void graph_times_use(struct graph_times *times);
void graph_times_release(struct graph_times *times);

#endif

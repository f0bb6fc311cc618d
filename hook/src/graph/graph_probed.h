/* A replay by the probed copy, with kernels probed in as many nodes as there is room for. */
#ifndef TUI_PROBE_GRAPH_PROBED_H
#define TUI_PROBE_GRAPH_PROBED_H

#include "executable.h"

struct replay {
    uint64_t n;     /* replays of the executable before this one */
    uint64_t first; /* the number of the launch that the first kernel node is */
    uint64_t time;  /* nanoseconds since 1970 */
    CUstream stream;
};

/* Returns why it cannot be, and nothing was launched; NULL: *RESULT is what the program gets. */
const struct reason *graph_probed(struct executable *executable, const struct replay *replay, CUresult *result);

#endif

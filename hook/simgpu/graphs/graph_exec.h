/* Executables: graphs as they were when they were instantiated. */
#ifndef TUI_PROBE_SIMGPU_GRAPH_EXEC_H
#define TUI_PROBE_SIMGPU_GRAPH_EXEC_H

#include "graph.h"

struct graph_exec {
    CUgraphExec handle;
    struct graph *graph; /* a copy of its own */
    unsigned long long flags;
};

/* Locks the driver and finds an executable. Fails, without the lock, for a handle that is none. */
CUresult enter_exec(CUgraphExec handle, struct graph_exec **exec);

#endif

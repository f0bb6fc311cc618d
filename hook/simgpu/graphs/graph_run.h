/* Graphs as they run. */
#ifndef TUI_PROBE_SIMGPU_GRAPH_RUN_H
#define TUI_PROBE_SIMGPU_GRAPH_RUN_H

#include "graph.h"

extern const struct work_kind child_work; /* a graph as a node of another */

/* The nodes, each after all that it waits for; to be freed. NULL: out of memory, or a circle. */
struct graph_node **graph_order(const struct graph *graph);

/* Runs a copy that no one else changes meanwhile; the driver's lock is not held. */
CUresult graph_run(const struct graph *graph);

#endif

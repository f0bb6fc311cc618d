/* A child graph that the program exchanges in an executable. */
#ifndef TUI_PROBE_GRAPH_CHILD_H
#define TUI_PROBE_GRAPH_CHILD_H

#include "executable.h"

/* The nodes below NODE, a child graph's, do in the clone and in the probed copy what those of FROM do, which has the
 * same topology. The lock of the probed copies is held. *CHANGED: some are of other kernels now. */
CUresult graph_child_follow(struct executable *executable, struct graph_node *node, CUgraph from, bool *changed);

#endif

/* Clusters of blocks, which a launch asks for or the kernel itself. */
#ifndef TUI_PROBE_SIMGPU_CLUSTER_H
#define TUI_PROBE_SIMGPU_CLUSTER_H

#include "module.h"

/* Sets `cluster` to what the attributes of a launch say of it, if anything. */
void cluster_of_config(const CUlaunchConfig *config, unsigned cluster[3]);

/* The most blocks of a cluster of the kernel, 1 on a GPU without clusters. */
unsigned cluster_limit(const struct kernel *kernel);

/* True if a grid is made of whole clusters that the GPU takes; all 0 are none. */
bool cluster_is_valid(const struct kernel *kernel, const unsigned cluster[3], const unsigned grid[3]);

#endif

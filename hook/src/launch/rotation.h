/* The probes of a kernel take turns over the launches that may be probed: the next one is that whose last launch is
 * longest ago. One that cannot have a launch leaves it to the others, and is the first to be asked of the next.
 * Launches of one shape have turns of their own: shapes that alternate would else meet the same probe each time. The
 * fused probe takes turns instead of its parts, and has the first one. As long as another one has turns, a probe has no
 * more of them after a launch that showed nothing of note, and none at all if it has no sites in the kernel. */
#ifndef TUI_PROBE_ROTATION_H
#define TUI_PROBE_ROTATION_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel.h"
#include "launch.h"

/* Those of KERNEL in the order in which LAUNCH may have them. Returns how many. */
size_t rotation_order(struct kernel *kernel, const struct launch *launch, struct kernel_probe *order[]);

/* True if a launch of the shape of LAUNCH had this one. */
bool rotation_has_served(const struct kernel_probe *probe, const struct launch *launch);

/* LAUNCH has this one. */
void rotation_served(struct kernel_probe *probe, const struct launch *launch);

/* No launch of such a shape has this one any more. False if that is so, or if no other one would be left. */
bool rotation_end(struct kernel_probe *probe, const uint32_t grid[3], const uint32_t block[3], uint32_t shared);

/* The next launch of such a shape may have this one before others. */
void rotation_first(struct kernel_probe *probe, const uint32_t grid[3], const uint32_t block[3], uint32_t shared);

#endif

/* Room in a kernel for the fused probe of a run, which is all counting probes together. */
#ifndef TUI_PROBE_FUSED_H
#define TUI_PROBE_FUSED_H

#include "launch.h"
#include "reasons.h"

/* The reason why FUSED, which is loaded, costs the kernel of LAUNCH too much: not half as many blocks fit on an SM as
 * without it, or registers are kept in memory. NULL if it does not. */
const struct reason *fused_refused(const struct kernel_probe *fused, const struct launch *launch);

#endif

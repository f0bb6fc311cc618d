/* Resident blocks of a launch, with and without the probe. Blocks that wait for one another
 * may rely on all being there; where the probe takes room away, so that they no longer are, such a kernel would never
 * end. The engine tells whose blocks cannot wait. */
#ifndef TUI_PROBE_RESIDENCY_H
#define TUI_PROBE_RESIDENCY_H

#include "kernel.h"
#include "launch.h"

/* The reason why LAUNCH must not have the probe of VARIANT: its blocks have more threads than the registers of the probed
 * kernel allow; or they may wait for one another, and all fit without the probe, and not with it. NULL: it may. */
const struct reason *residency_refuses(struct variant *variant, const struct kernel_probe *probe,
                                       const struct launch *launch);

/* Accepts NULL. */
void residency_free(struct residency *residency);

#endif

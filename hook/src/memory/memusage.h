/* Memory of probes without probing: what the records of each launch would take is computed from its geometry. Where
 * only the kernel can tell how many there are, a probed kernel that keeps none counts them. */
#ifndef TUI_PROBE_MEMUSAGE_H
#define TUI_PROBE_MEMUSAGE_H

#include "launch.h"

/* Launches the original, or for a dynamic map the kernel that counts, and logs the memory. */
CUresult memusage_launch(struct launch *launch, struct kernel *kernel);

void memusage_reset(void);

#endif

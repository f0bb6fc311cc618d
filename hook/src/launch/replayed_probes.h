/* Launches of a kernel for the probes that its program's own launch does not have (run --replay).
 *
 * They come before the program's own, each with the memory that this finds: it is saved before and put back after
 * each. Where that is not certain, there are none: as for benchmarks. They leave results, and no lines of launches. */
#ifndef TUI_PROBE_REPLAYED_PROBES_H
#define TUI_PROBE_REPLAYED_PROBES_H

#include "launch.h"

/* The calling thread launches a kernel. Waits while another thread's launch is replayed. */
void replayed_probes_note_thread(void);

/* Launches KERNEL as LAUNCH will, in CONTEXT, which is current, once for each probe that no launch of this shape had;
 * but for that whose turn it is. Logs why it cannot. */
void replayed_probes_launch(const struct launch *launch, struct kernel *kernel, CUcontext context);

void replayed_probes_reset(void);

#endif

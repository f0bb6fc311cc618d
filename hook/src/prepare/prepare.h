/* Preparation of a kernel at its first launch. */
#ifndef TUI_PROBE_PREPARE_H
#define TUI_PROBE_PREPARE_H

#include <stdbool.h>

#include "launch.h"
#include "reasons.h"

/* Decides whether the kernel is probed, with the engine's help, and logs it. Other threads that launch it wait. */
enum kernel_status prepare_kernel(struct kernel *kernel, const struct launch *launch);

/* The same, without waiting for probes that are not ready when others are. True if there are such probes: then
 * prepare_late or prepare_leave_late is to follow. */
bool prepare_early(struct kernel *kernel, const struct launch *launch);

/* Waits for those probes, which later launches have. */
void prepare_late(struct kernel *kernel, const struct launch *launch);

/* Does without them. */
void prepare_leave_late(struct kernel *kernel);

/* The reason why a new kernel is not to be prepared now; NULL if it may be. */
const struct reason *prepare_refused(const struct kernel *kernel, const struct launch *launch);

/* A kernel turns out not to be launchable with a probe: from now on it has the others, or the original runs. */
void prepare_give_up(struct kernel_probe *probe, const struct launch *launch, const struct reason *reason);

void prepare_reset(void);

#endif

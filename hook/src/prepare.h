/* What happens at the first launch of a kernel. */
#ifndef TUI_PROBE_PREPARE_H
#define TUI_PROBE_PREPARE_H

#include "launch.h"
#include "reasons.h"

/* Decides the kernel's fate, with the engine's help, and logs it. Other threads that launch it wait. */
enum kernel_status prepare_kernel(struct kernel *kernel, const struct launch *launch);

/* A kernel turns out not to be launchable with a probe: from now on it has the others, or the original runs. */
void prepare_give_up(struct probing *probing, const struct launch *launch, const struct reason *reason);

/* Kernels that were only ever launched inside captures have no fate yet: log it at the end. */
void prepare_log_unprepared(void);

void prepare_reset(void);

#endif

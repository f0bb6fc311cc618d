/* What happens at the first launch of a kernel. */
#ifndef TUI_PROBE_PREPARE_H
#define TUI_PROBE_PREPARE_H

#include "launch.h"
#include "reasons.h"

/* Decides whether the kernel is probed, with the engine's help, and logs it. Other threads that launch it wait. */
enum kernel_status prepare_kernel(struct kernel *kernel, const struct launch *launch);

/* Asks the engine for the sampled form of PROBE, and settles what it says, unless the trace has no room for it. Other
 * threads that want it wait. */
void prepare_sampled_form(struct kernel_probe *probe);

/* Why a new kernel is not to be prepared now; NULL if it may be. */
const struct reason *prepare_refused(const struct kernel *kernel, const struct launch *launch);

/* A kernel turns out not to be launchable with a probe: from now on it has the others, or the original runs. */
void prepare_give_up(struct kernel_probe *probe, const struct launch *launch, const struct reason *reason);

/* The same of its sampled form alone. */
void prepare_give_up_sampled(struct kernel_probe *probe, const struct reason *reason);

/* Kernels that were never prepared, for want of a launch that might be probed, have no result yet: log one at
 * the end. */
void prepare_log_unprepared(void);

/* Logs how many launches of each kernel the log had no room for. */
void prepare_log_unlisted(void);

/* Counts the folder of the kernel that was prepared last once more, for what the engine has written since. */
void prepare_count_last(void);

void prepare_reset(void);

#endif

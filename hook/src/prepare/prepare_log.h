/* Lines of event.log about kernels that were prepared, or never were. */
#ifndef TUI_PROBE_PREPARE_LOG_H
#define TUI_PROBE_PREPARE_LOG_H

#include "kernel.h"
#include "launch.h"
#include "reasons.h"

/* The status of a kernel, or of one probe in it, as the log spells it. */
struct prepare_result {
    const char *status;
    const struct reason *reason; /* NULL: probed */
};

static inline struct prepare_result prepare_skipped(const struct reason *reason)
{
    return (struct prepare_result){"skipped", reason};
}

static inline struct prepare_result prepare_failed(const struct reason *reason)
{
    return (struct prepare_result){"failed", reason};
}

/* The first probe that the kernel can have, or the fused one for it, else the first. */
const struct kernel_probe *prepare_first_usable(struct kernel *kernel);

/* For one probe among several in its kernel. */
void prepare_log_probe(struct kernel_probe *probe, const struct launch *launch, struct prepare_result result);

/* Tells if the counting probes of the run are in the kernel together, and if not why. */
void prepare_log_fused(const struct kernel *kernel);

/* Resources of the probed kernel, again where another probe is the first one now. */
void prepare_log_function(struct kernel *kernel, const struct launch *launch);
void prepare_log_result(struct kernel *kernel, const struct launch *launch, struct prepare_result result);

/* Kernels that were never prepared, for want of a launch that might be probed, have no result yet: log one at
 * the end. */
void prepare_log_unprepared(void);

/* Logs how many launches of each kernel the log had no room for. */
void prepare_log_unlisted(void);

#endif

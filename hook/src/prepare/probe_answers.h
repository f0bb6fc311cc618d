/* Answers of the engine about the probes of a kernel: their files are read, and the probed kernels loaded. */
#ifndef TUI_PROBE_PROBE_ANSWERS_H
#define TUI_PROBE_PROBE_ANSWERS_H

#include <stdbool.h>

#include "engine_client.h"
#include "kernel.h"
#include "launch.h"
#include "prepare_log.h"

/* The lock of kernel_folder.h is held by callers of all of these. It is free while the engine is asked. */

/* Follows the answer about one probe of a kernel, whose files are in DIRECTORY. */
struct prepare_result follow_answer(struct kernel_probe *probe, const struct launch *launch, const char *directory,
                                    const struct engine_answer *answer);

/* Asks for the parts of the kernel's fused probe, which are in ANSWERS, each by itself. */
void ask_for_parts(const struct kernel *kernel, const char *directory, const char *target,
                   struct engine_answer *answers);

/* Follows the answers about all probes of KERNEL, the fused one last. Returns the result of the first that is in it,
 * else that of the first. */
struct prepare_result follow_answers(struct kernel *kernel, const struct launch *launch, const char *directory,
                                     const char *target, struct engine_answer *answers, struct prepare_result *results);

/* With the watchdog, every launch has its code. Where the fused probe does not go into KERNEL, the other parts therefore
 * have no launches, and RESULTS say so. */
void leave_kernel_to_watchdog(struct kernel *kernel, struct prepare_result *results);

/* Follows those ANSWERS that came late, and has launches have these probes. */
void follow_late_answers(struct kernel *kernel, const struct launch *launch, const bool *is_late,
                         struct engine_answer *answers);

#endif

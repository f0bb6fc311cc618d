/* A launch of a probed kernel in the original's place. */
#ifndef TUI_PROBE_PROBED_LAUNCH_H
#define TUI_PROBE_PROBED_LAUNCH_H

#include "kernel_info.h"
#include "launch.h"
#include "launch_resources.h"

/* The arguments of one probed launch: the original's, then one address per map, the cap of each dynamic one, which
 * blocks measure, and one address per global. */
struct arguments {
    void *pointers[KERNEL_ARGUMENTS_LIMIT];
    uint64_t addresses[KERNEL_ARGUMENTS_LIMIT];
    _Alignas(16) char completed[4096]; /* the last parameter, where the program's buffer ends within it */
};

/* Room for them that the calling thread has to itself until it gives it back: too large for the stack of any thread.
 * Given back, it stays with the thread for its next launch. NULL: there is no memory. */
struct arguments *arguments_take(void);
void arguments_give(struct arguments *arguments);

/* Points at the parameters that the program passes with LAUNCH. Returns why that cannot be done, or NULL. */
const struct reason *arguments_originals(struct arguments *arguments, const struct launch *launch,
                                         const struct kernel *kernel);

/* Puts them together for a launch whose records begin at MEMORY. Returns why that cannot be done, or NULL. */
const struct reason *arguments_fill(struct arguments *arguments, const struct launch *launch,
                                    const struct kernel_probe *probe, const struct variant *variant,
                                    CUdeviceptr memory);

/* Takes what LAUNCH needs with the first probe in turn that finds room. Returns why the first of all found none, or
 * NULL. */
const struct reason *probed_take_in_turn(struct launch_resources *resources, struct launch *launch,
                                         struct kernel *kernel, CUcontext context);

/* Logs a launch of a probed kernel, with RESULT; returns it. */
CUresult probed_log_launch(const struct launch *launch, const struct kernel_probe *probe,
                           const struct arguments *arguments, CUresult result);

/* Launches it with the probe whose turn it is, or the original with a reason in the log. The result is the
 * program's. */
CUresult launch_probed(struct launch *launch, struct kernel *kernel);

#endif

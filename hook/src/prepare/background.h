/* Kernels are prepared by hook threads, as many as the machine has processors for: the engine works on as many.
 *
 * A launch waits for its kernel, so that none is missed, until such waits add up to a second and a part of the run.
 * From then on launches pass while their kernels are prepared, those of most GPU time first. A kernel is launched with the
 * first of its probes that is ready; the others follow. */
#ifndef TUI_PROBE_BACKGROUND_H
#define TUI_PROBE_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel.h"
#include "launch.h"

/* True if a hook thread prepares KERNEL, which is new, and this launch has waited long enough, so that it passes. If
 * not, the caller prepares it, or finds it prepared. */
bool background_takes(struct kernel *kernel, const struct launch *launch);

/* The same for the sampled form of PROBE, which is not ready. */
bool background_takes_form(struct kernel_probe *probe, const struct launch *launch);

/* A launching thread has waited for a kernel to be prepared. */
void background_waited(uint64_t nanoseconds);

/* Before CODE or CONTEXT goes: what is to be prepared of it is let go. */
void background_leave(const struct code *code);
void background_leave_context(CUcontext context);

/* Forgets everything, in a forked child. */
void background_reset(void);

#endif

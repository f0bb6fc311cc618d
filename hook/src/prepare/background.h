/* Kernels that are prepared while the program goes on: their launches pass meanwhile.
 *
 * The first kernels of a program are prepared by the threads that launch them, which is simple and misses no launch. A
 * program with many kernels would wait for each, so once such waits add up threads of ours take over, as many as the
 * machine has processors for: the engine works on as many kernels at once. */
#ifndef TUI_PROBE_BACKGROUND_H
#define TUI_PROBE_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel.h"
#include "launch.h"

/* True if a thread of ours prepares KERNEL, which is new, so that this launch passes; if not, the caller does. */
bool background_takes(struct kernel *kernel, const struct launch *launch);

/* The same for the sampled form of PROBE, which is not ready. */
bool background_takes_form(struct kernel_probe *probe, const struct launch *launch);

/* A launching thread has waited for a kernel to be prepared. */
void background_waited(uint64_t nanoseconds);

/* Before CODE or CONTEXT goes: what waits to be prepared of it is let go, what is being prepared waited for. */
void background_leave(const struct code *code);
void background_leave_context(CUcontext context);

/* Forgets everything, in a forked child. */
void background_reset(void);

#endif

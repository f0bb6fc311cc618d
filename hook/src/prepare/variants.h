/* The probed function of a kernel, loaded once in each context that launches it. */
#ifndef TUI_PROBE_VARIANTS_H
#define TUI_PROBE_VARIANTS_H

#include "kernel.h"
#include "launch.h"

/* The variant of PROBE for the launch's instance in the current CONTEXT, loaded on first use; NULL if that failed, and
 * *REASON says why. The load path, maps and globals are set. SAMPLED: its sampled form, which is ready. */
struct variant *variants_get(struct kernel_probe *probe, const struct launch *launch, CUcontext context, bool sampled,
                             const struct reason **reason);

/* The variant of PROBE that was loaded last for INSTANCE; NULL: none. */
const struct variant *variants_newest(const struct instance *instance, const struct kernel_probe *probe);

/* The program unloads CODE: so do we with what was made of it. */
void variants_unload(struct code *code);

/* Frees the records of what was unloaded. */
void variants_free(struct code *code);

/* CONTEXT may be about to go: its handle leads to its variants no longer. */
void variants_leave(CUcontext context);

/* It is GONE, and their modules with it; or it is not, and has its variants again. */
void variants_settle(CUcontext context, bool gone);

/* Repeats on the probed functions what the program sets on the original; DEVICE -1: on all devices. */
void variants_set_attribute(const void *handle, int attribute, int value, CUdevice device);
void variants_set_cache(const void *handle, int config, CUdevice device);

/* Forgets that another thread may be at work, in a forked child. */
void variants_reset(void);

#endif

/* The variables of the program's module that a probed module of the same kernel must not have copies of. */
#ifndef TUI_PROBE_SHARED_VARIABLES_H
#define TUI_PROBE_SHARED_VARIABLES_H

#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

/* The address and size of a variable of the original's module, in the current context. Returns why there is none, or
 * NULL. */
const struct reason *shared_variable(const struct code *code, const char *name, CUdeviceptr *address, size_t *size);

/* Writes addresses of the variables of CODE, the original's load, into a FILE of machine code of SIZE bytes, before it
 * is loaded. Returns why that cannot be done, or NULL. */
const struct reason *shared_patch(const struct kernel_probe *probe, const struct code *code, uint8_t *file,
                                  size_t size);

/* Finds the constants of VARIANT, whose module is loaded, and those of the original. Returns why not, or NULL. */
const struct reason *shared_find_constants(const struct kernel_probe *probe, const struct code *code,
                                           struct variant *variant);

/* Copies the original's constants to those of the probed module, in the order of STREAM: a launch behind it sees what
 * the original would see. */
CUresult shared_copy_constants(const struct kernel_probe *probe, const struct variant *variant, CUstream stream);

#endif

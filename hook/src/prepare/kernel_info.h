/* kernel.info: what the engine says about a probed kernel. */
#ifndef TUI_PROBE_KERNEL_INFO_H
#define TUI_PROBE_KERNEL_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel.h"
#include "sampling.h"

/* Parameters, maps and globals together: what one launch passes. */
enum { KERNEL_ARGUMENTS_LIMIT = 512, LAUNCH_PARAMETERS = SAMPLING_PARAMETERS + 2 }; /* a number, allocations */

/* As kernel.info and event.log spell it. */
const char *way_name(enum way way);

/* Reads PATH into the maps and globals of PROBE, and the parameter count of its kernel. On failure returns why. */
const struct reason *kernel_info_read(const char *path, struct kernel_probe *probe);

/* The reason why what PATH says of another form of PROBE does not go with PROBE: of the SAMPLED one, or one that is not
 * fused with others. NULL if it does. */
const struct reason *kernel_info_agrees(const char *path, const struct kernel_probe *probe, bool sampled);

#endif

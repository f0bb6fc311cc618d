/* The distinct kernels of the process. A kernel is identified by its content: loads of equal images have one record for
 * each of their kernels, however often and in however many contexts the program loads them. */
#ifndef TUI_PROBE_KERNELS_H
#define TUI_PROBE_KERNELS_H

#include "kernel.h"

/* Longer names are cut, and such kernels run unprobed: no message, log line or file of tui-probe has to hold them. */
enum { KERNEL_NAME_BYTES = 1 << 16 };

/* The kernel NAME of IDENTITY, made on first sight. Once the process has too many kernels, or event.log no room for
 * more, the rest share one record. NULL without memory. */
struct kernel *kernels_get(const struct identity *identity, const char *name);

/* Gives the kernel its place in order of first launch. */
void kernels_number(struct kernel *kernel);

/* Calls VISIT for every kernel, the newest first; no kernel is added meanwhile. */
void kernels_each(void (*visit)(struct kernel *kernel, void *argument), void *argument);

/* Forgets that another thread may be at work, in a forked child. */
void kernels_reset(void);

#endif

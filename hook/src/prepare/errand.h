/* Work that a hook thread does while the calling thread waits: it needs more stack than a thread of the program may
 * have, and makes system calls that a sandbox of that thread may forbid. */
#ifndef TUI_PROBE_ERRAND_H
#define TUI_PROBE_ERRAND_H

#include <stdbool.h>

/* Starts the thread, once. To be called before the program may have a sandbox. False if it cannot be started. */
bool errand_start(void);

/* Calls WORK with ARGUMENT on that thread, in the calling thread's context, and returns when it has returned. On a
 * hook thread, and where there is no such thread, it is called here. The caller holds no lock that WORK takes. */
void errand_run(void (*work)(void *argument), void *argument);

/* In a forked child, which has no such thread. */
void errand_reset(void);

#endif

/* When the hook begins to work in a process, and how it ends with it. */
#ifndef TUI_PROBE_LIFETIME_H
#define TUI_PROBE_LIFETIME_H

#include <stdbool.h>

/* Whether this process is traced, or will be once it launches a kernel. */
bool hook_active(void);

/* To be called by every launch: the first one makes the trace. False: pass the call on. */
bool hook_launching(void);

/* Brings everything launched so far to disk, waiting no longer than the program's end may wait. */
void hook_flush(void);

#endif

/* The end of a load: its handles are invalid, and its probed modules go with it. */
#ifndef TUI_PROBE_UNLOADING_H
#define TUI_PROBE_UNLOADING_H

#include <stdbool.h>

#include "kernel.h"

/* The program is about to unload the load behind HANDLE, which is returned: once the driver has, it may give the handle
 * to another. NULL if there is none. */
struct code *unloading_begin(void *handle);

/* The driver has unloaded CODE, or has refused to. Accepts NULL. */
void unloading_end(struct code *code, bool is_unloaded);

/* The driver gives HANDLE to a new load: what it led to was unloaded unseen. */
void unloading_unseen(void *handle);

/* CONTEXT, which was passed to registry_leave_context, is GONE with all that was loaded in it; or it is not. */
void unloading_settle_context(CUcontext context, bool gone);

/* Forgets that another thread may be at work, in a forked child. */
void unloading_reset(void);

#endif

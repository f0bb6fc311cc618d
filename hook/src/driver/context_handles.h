/* Handles that are good in one context only, and lead to something that outlives it: functions and modules of
 * libraries. The caller holds the registry's lock. */
#ifndef TUI_PROBE_CONTEXT_HANDLES_H
#define TUI_PROBE_CONTEXT_HANDLES_H

#include "cuda_abi.h"
#include "handle_table.h"

/* HANDLE of the current context leads to VALUE in TABLE from now on. */
void context_handles_put(struct handle_table *table, const void *handle, void *value);

/* The values that MATCH are gone, and TABLE has forgotten them. */
void context_handles_remove(struct handle_table *table, bool (*matches)(const void *value, const void *wanted),
                            const void *wanted);

/* CONTEXT may be about to go, or, with false, is not. */
void context_handles_leave(CUcontext context, bool leaves);

/* It is gone: its handles are invalid, except those that another context has been given since. */
void context_handles_forget(CUcontext context);

void context_handles_reset(void);

#endif

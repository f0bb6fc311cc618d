/* The current context of each thread. The caller holds the driver's lock, in all but `enter`. */
#ifndef TUI_PROBE_SIMGPU_CURRENT_H
#define TUI_PROBE_SIMGPU_CURRENT_H

#include "driver.h"

/* Locks the driver and finds the thread's current context. Fails, without the lock, if there is none or it is
 * broken. */
CUresult enter(struct context **context);

/* The current context of this thread, destroyed or broken as it may be. */
CUresult current_context(struct context **context);

/* CUDA_ERROR_INVALID_CONTEXT if the thread's stack is full. */
CUresult context_push(CUcontext handle);

/* False if the stack is empty; `handle` may be NULL. */
bool context_pop(CUcontext *handle);

/* NULL if there is none. */
CUcontext context_top(void);

#endif

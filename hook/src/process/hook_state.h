/* The state of tracing in this process: from when it is loaded until its last records are saved. */
#ifndef TUI_PROBE_HOOK_STATE_H
#define TUI_PROBE_HOOK_STATE_H

#include <stdbool.h>

/* True if this process is traced, or will be once it launches a kernel. */
bool hook_active(void);

/* To be called by every launch: the first one makes the trace. False: pass the call on. */
bool hook_launching(void);

/* True if there is a trace that still takes records. */
bool hook_is_on(void);

/* The first launch shall call BEGIN; if that returns false, the process is not traced. A child calls IN_CHILD, which
 * ends with hook_state_reset, when it asks for the first time whether it is traced: unless it was called before. */
void hook_state_wait(bool (*begin)(void), void (*in_child)(void));

/* The last records are being saved, and later launches are none of the trace's business. False but for the first
 * call after the trace was begun. */
bool hook_state_end(void);

/* True until the last records are saved. */
bool hook_state_is_ending(void);

/* For good: nothing more is logged. */
void hook_state_off(void);

/* But where the end did not come: the trace continues. */
void hook_state_resume(void);

/* In a forked child, which is traced only if its parent had not launched anything. */
void hook_state_reset(void);

#endif

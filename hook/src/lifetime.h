/* When the hook begins to work in a process, and how it ends with it. */
#ifndef TUI_PROBE_LIFETIME_H
#define TUI_PROBE_LIFETIME_H

/* Brings everything launched so far to disk, waiting no longer than the program's end may wait. */
void hook_flush(void);

/* Before another program takes the place of this one in its process: what a process leaves at its end is saved. If that
 * fails, hook_stay goes on with the trace. Neither does anything in a child that shares memory with its parent (vfork). */
void hook_leave_for_exec(void);
void hook_stay(void);

#endif

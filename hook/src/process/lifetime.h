/* Start and end of the hook in a process. */
#ifndef TUI_PROBE_LIFETIME_H
#define TUI_PROBE_LIFETIME_H

/* Brings everything launched so far to disk, waiting no longer than the program's end may wait. */
void hook_flush(void);

#endif

/* Our own functions by name, for programs that ask the driver for its functions' addresses. */
#ifndef TUI_PROBE_PROC_ADDRESS_H
#define TUI_PROBE_PROC_ADDRESS_H

/* The hook's function of exactly this exported NAME, or NULL if NAME is the real driver's own. */
void *wrapper_named(const char *name);

#endif

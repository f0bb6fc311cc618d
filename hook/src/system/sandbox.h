/* Seccomp filters that a program installs for itself. Those of a container are seen as well, and change nothing: only
 * calls that would end the process are kept from it. */
#ifndef TUI_PROBE_SANDBOX_H
#define TUI_PROBE_SANDBOX_H

#include <stdbool.h>

/* The calling hook thread is the one whose filters are looked at from now on: those of the thread that started it,
 * and what the program gives to all threads. */
void sandbox_begin(void);

/* True if a call that files, sockets and hook threads need would end the process. To be asked before such work, on a
 * hook thread. */
bool sandbox_is_deadly(void);

void sandbox_reset(void);

#endif

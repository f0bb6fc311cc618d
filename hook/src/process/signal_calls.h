/* The functions by which a program sends itself a signal: it may have given that back to the system, which would end
 * the process before its results are saved. */
#ifndef TUI_PROBE_SIGNAL_CALLS_H
#define TUI_PROBE_SIGNAL_CALLS_H

#include <sys/types.h>

#include "references.h"

enum { SIGNAL_FUNCTIONS = 8 };

/* LIST receives their names, and the functions that are before those of the C library. */
void signal_calls_list(struct reference list[SIGNAL_FUNCTIONS]);

/* The program is about to send a signal to PROCESS, as `kill` names it. */
void signal_calls_expect(pid_t process, int signal_number);

#endif
